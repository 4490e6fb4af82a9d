package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// readyWithin is ample for a machine that is busy building something else.
const readyWithin = 2 * time.Minute

// Plane is a running control plane.
type Plane struct {
	assets    Assets
	dir       string
	config    *clientcmdapi.Config
	etcd, api *process
	// Where the API server finds etcd, and is found.
	storage, port string
}

// Start starts a plane and returns when its API server is ready. On an error
// nothing is left running.
func Start(ctx context.Context, assets Assets) (_ *Plane, err error) {
	if err := assets.Check(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return nil, err
	}
	p := &Plane{assets: assets, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	server := "https://127.0.0.1:" + ports[2]
	if err := p.writeCredentials(server); err != nil {
		return nil, err
	}
	if err := p.startEtcd("http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]); err != nil {
		return nil, err
	}
	p.storage, p.port = "http://127.0.0.1:"+ports[0], ports[2]
	if err := p.startAPIServer(p.storage, p.port); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return p, p.waitReady(ctx, server)
}

// Restart kills the API server and starts it again, with what it has stored. It returns when the server is ready.
func (p *Plane) Restart(ctx context.Context) error {
	p.api.kill()
	if err := p.startAPIServer(p.storage, p.port); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return p.waitReady(ctx, "https://127.0.0.1:"+p.port)
}

// Stop ends the plane and removes all that it wrote. It may be called twice.
func (p *Plane) Stop() error {
	for _, child := range []*process{p.api, p.etcd} {
		if child != nil {
			child.kill()
		}
	}
	return os.RemoveAll(p.dir)
}

// Config is the cluster administrator's kubeconfig, with all keys inside.
func (p *Plane) Config() *clientcmdapi.Config { return p.config.DeepCopy() }

// Kubeconfig is the path of a file that holds Config.
func (p *Plane) Kubeconfig() string { return filepath.Join(p.dir, "admin.kubeconfig") }

// Assets is where the plane's programs, kubectl among them, are.
func (p *Plane) Assets() Assets { return p.assets }

func (p *Plane) writeCredentials(server string) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	serving, err := ca.server()
	if err != nil {
		return err
	}
	admin, err := ca.client("admin", "system:masters")
	if err != nil {
		return err
	}
	_, serviceAccounts, err := newKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt": ca.pem(), "server.crt": serving.cert, "server.key": serving.key, "sa.key": serviceAccounts.key,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	const name = "e2e"
	p.config = clientcmdapi.NewConfig()
	p.config.CurrentContext = name
	p.config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca.pem()}
	p.config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.cert, ClientKeyData: admin.key}
	p.config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	return clientcmd.WriteToFile(*p.config, p.Kubeconfig())
}

func (p *Plane) startEtcd(client, peer string) (err error) {
	p.etcd, err = startProcess("etcd", filepath.Join(p.dir, "etcd.log"), p.assets.Program("etcd"),
		"--name=e2e", "--data-dir="+filepath.Join(p.dir, "etcd"), "--log-level=warn",
		"--unsafe-no-fsync", // the data need not survive a crash
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=e2e="+peer)
	return err
}

func (p *Plane) startAPIServer(etcd, port string) (err error) {
	file := func(name string) string { return filepath.Join(p.dir, name) }
	p.api, err = startProcess("kube-apiserver", file("kube-apiserver.log"), p.assets.Program("kube-apiserver"),
		"--etcd-servers="+etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+port,
		"--endpoint-reconciler-type=none", // which refuses a loopback address
		"--tls-cert-file="+file("server.crt"), "--tls-private-key-file="+file("server.key"), "--client-ca-file="+file("ca.crt"),
		"--authorization-mode=RBAC",
		"--allow-privileged",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+file("sa.key"), "--service-account-signing-key-file="+file("sa.key"),
		// No controller makes default ServiceAccounts here, so every Pod would be refused.
		"--disable-admission-plugins=ServiceAccount",
		// API Priority and Fairness, as it is by default, but room for tests in parallel.
		"--max-requests-inflight=3000", "--max-mutating-requests-inflight=3000")
	return err
}

func (p *Plane) waitReady(ctx context.Context, server string) error {
	config, err := clientcmd.NewDefaultClientConfig(*p.config, nil).ClientConfig()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for {
		if ready(ctx, client, server+"/readyz") {
			return nil
		}
		select {
		case <-p.etcd.ended:
			return p.etcd.failure()
		case <-p.api.ended:
			return p.api.failure()
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// freePorts asks the kernel for free ports. Another process
// may take one before its user does; the plane then says so and does not start.
func freePorts(n int) ([]string, error) {
	ports := make([]string, 0, n)
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // held until all ports are chosen, so that they differ
		ports = append(ports, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
