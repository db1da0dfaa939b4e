package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"time"
)

// Handshake is what a client knows when a server shows its certificate.
type Handshake struct {
	Chain  string    `json:"chain"`
	Bundle string    `json:"bundle"`
	Name   string    `json:"name"`
	Time   time.Time `json:"time"`
}

// verified verifies a server as crypto/tls does for a client, with the trust that the API server's client-go makes
// of a caBundle (k8s.io/client-go/transport.rootCertPool).
func verified(shown Handshake) (any, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(shown.Bundle)) {
		return nil, errors.New("unable to load root certificates")
	}
	var chain []*x509.Certificate
	for block, rest := pem.Decode([]byte(shown.Chain)); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		chain = append(chain, certificate)
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, DNSName: shown.Name, CurrentTime: shown.Time,
	})
	return err == nil, err
}

// Bundles are two caBundles.
type Bundles struct {
	One     string `json:"one"`
	Another string `json:"another"`
}

// equal tells whether a client trusts the same by both.
func equal(bundles Bundles) (any, error) {
	one, another := x509.NewCertPool(), x509.NewCertPool()
	one.AppendCertsFromPEM([]byte(bundles.One))
	another.AppendCertsFromPEM([]byte(bundles.Another))
	return map[string]bool{"equal": one.Equal(another)}, nil
}
