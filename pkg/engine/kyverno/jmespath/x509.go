package jmespath

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// maxCertificate bounds a certificate in bytes, since long numbers, names and extensions take time to read.
const maxCertificate = 64 << 10

// x509Decode returns a certificate, or a certificate request, like encoding/json shows Go's type, but with
// the key's modulus as a string. Only RSA keys are supported, as in Kyverno.
func x509Decode(_ *Interpreter, args []any) (any, error) {
	block, _ := pem.Decode([]byte(args[0].(string)))
	if block == nil {
		return nil, errors.New("failed to decode PEM block")
	}
	if len(block.Bytes) > maxCertificate {
		return nil, &limit.Error{What: "bytes of a certificate", Max: maxCertificate}
	}
	switch block.Type {
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return withPublicKey(certificate, &certificate.PublicKey)
	case "CERTIFICATE REQUEST":
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, err
		}
		return withPublicKey(request, &request.PublicKey)
	}
	return nil, errors.New("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
}

// withPublicKey returns a value with its key as Kyverno shows it.
func withPublicKey(value any, key *any) (any, error) {
	rsaKey, ok := (*key).(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("certificate should use rsa algorithm")
	}
	*key = map[string]any{"N": rsaKey.N.String(), "E": rsaKey.E}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return decode(string(data))
}
