package jmespath

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// publicKey is how Kyverno shows a key: the modulus in decimal, as a text.
type publicKey struct {
	N string
	E int
}

// maxCertificate bounds a certificate in bytes: numbers, names and extensions of any length take
// time to read.
const maxCertificate = 64 << 10

// x509Decode shows a certificate, or a request for one, as encoding/json shows
// Go's type of it. Only RSA keys are supported, as in Kyverno.
func x509Decode(_ *Interpreter, args []any) (any, error) {
	block, _ := pem.Decode([]byte(args[0].(string)))
	if block != nil && len(block.Bytes) > maxCertificate {
		return nil, &limit.Error{What: "bytes of a certificate", Max: maxCertificate}
	}
	if block == nil {
		return nil, errors.New("failed to decode PEM block")
	}
	switch block.Type {
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if certificate.PublicKey, err = showKey(certificate.PublicKey); err != nil {
			return nil, err
		}
		return throughJSON(certificate)
	case "CERTIFICATE REQUEST":
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, err
		}
		if request.PublicKey, err = showKey(request.PublicKey); err != nil {
			return nil, err
		}
		return throughJSON(request)
	}
	return nil, errors.New("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
}

func showKey(key any) (any, error) {
	rsaKey, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("certificate should use rsa algorithm")
	}
	return publicKey{N: rsaKey.N.String(), E: rsaKey.E}, nil
}

func throughJSON(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return decode(string(data))
}
