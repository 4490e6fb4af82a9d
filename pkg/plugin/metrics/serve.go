package metrics

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// The bounds of a request to a Server.
const (
	maxRequest = 5 * time.Second // to read it
	maxAnswer  = 10 * time.Second
	maxIdle    = time.Minute // between two on one connection
	maxHeader  = 16 << 10
)

const contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Server serves the metrics of a run at /metrics and its readiness at /readyz: 200, perhaps with a note, or
// 503 with the reason.
type Server struct {
	server   http.Server
	listener net.Listener
}

// Listen serves on HOST:PORT until Close; without a HOST on the loopback interface. Several goroutines call
// ready; its error is why the run is not ready, and is shown to anybody who asks.
func Listen(ctx context.Context, address string, r *Run,
	ready func() (note string, err error),
) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		if _, err := r.WriteTo(&text); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = text.WriteTo(w) // who asked has gone
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		note, err := ready()
		if err != nil {
			http.Error(w, redact.EscapeLine(err.Error()), http.StatusServiceUnavailable)
			return
		}
		if note != "" {
			note = ": " + redact.EscapeLine(note)
		}
		_, _ = fmt.Fprintln(w, "ready"+note) // who asked has gone
	})
	s := &Server{listener: listener, server: http.Server{
		Handler: mux, ReadTimeout: maxRequest, WriteTimeout: maxAnswer, IdleTimeout: maxIdle,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       log.New(io.Discard, "", 0), // what others send
	}}
	go func() { _ = s.server.Serve(listener) }() // it ends with Close
	return s, nil
}

// URL returns the address of the metrics.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Close ends the server and its connections.
func (s *Server) Close() error { return s.server.Close() }
