package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Load reads the files that c names; nil for a nil c.
func (c *ClientTLS) Load() (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify}
	var err error
	if out.RootCAs, err = authorities(c.CAFile); err != nil {
		return nil, err
	}
	if out.Certificates, err = certificate(c.CertFile, c.KeyFile); err != nil {
		return nil, err
	}
	return out, nil
}

// Load reads the files that c names; nil for a nil c.
func (c *ServerTLS) Load() (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if out.Certificates, err = certificate(c.CertFile, c.KeyFile); err != nil {
		return nil, err
	}
	if out.ClientCAs, err = authorities(c.ClientCAFile); err != nil {
		return nil, err
	}
	if out.ClientCAs != nil {
		out.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return out, nil
}

func certificate(cert, key string) ([]tls.Certificate, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls: certificate %s: %w", cert, err)
	}
	return []tls.Certificate{pair}, nil
}

// authorities is nil when no file is named: those of the system.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls: authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls: authorities %s: no PEM certificate in it", file)
	}
	return pool, nil
}
