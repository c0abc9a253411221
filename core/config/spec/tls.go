package spec

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
)

// ServerTLS is TLS of a listener.
type ServerTLS struct {
	// PEM file of the certificate and its chain.
	CertFile string `yaml:"cert_file" kind:"path"`
	// PEM file of the private key.
	KeyFile string `yaml:"key_file" kind:"path"`
	// PEM file of the authorities whose clients are let in. Empty: no client
	// certificate is asked for.
	ClientCAFile string `yaml:"client_ca_file" kind:"path"`
}

// ClientTLS is TLS towards a server.
type ClientTLS struct {
	// PEM file of the authorities to trust. Empty: those of the system.
	CAFile string `yaml:"ca_file" kind:"path"`
	// PEM file of the client certificate.
	CertFile string `yaml:"cert_file" kind:"path"`
	// PEM file of its private key.
	KeyFile string `yaml:"key_file" kind:"path"`
	// Accept any certificate. For tests only.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
	// Name that the server's certificate must have. Empty: the host of the URL.
	ServerName string `yaml:"server_name"`
}

// Validate implements Section.
func (t *ServerTLS) Validate(c *Check) {
	if t != nil {
		c.Required("cert_file", t.CertFile)
		c.Required("key_file", t.KeyFile)
	}
}

// Validate checks TLS towards the URL in the key named of.
func (t *ClientTLS) Validate(c *Check, of, rawURL string) {
	if t == nil {
		return
	}
	if t.CertFile == "" && t.KeyFile != "" {
		c.RequiredBy("cert_file", "", "key_file")
	}
	if t.KeyFile == "" && t.CertFile != "" {
		c.RequiredBy("key_file", "", "cert_file")
	}
	if u, err := url.Parse(rawURL); err == nil && u.Scheme == "http" {
		c.Report("", "has no effect: "+of+" is http://", "make it https:// or remove this")
	}
}

// Load reads the files that t names; nil for a nil t.
func (t *ClientTLS) Load() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify}
	var err error
	if out.RootCAs, err = authorities(t.CAFile); err != nil {
		return nil, err
	}
	if out.Certificates, err = certificate(t.CertFile, t.KeyFile); err != nil {
		return nil, err
	}
	return out, nil
}

// Load reads the files that t names; nil for a nil t.
func (t *ServerTLS) Load() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if out.Certificates, err = certificate(t.CertFile, t.KeyFile); err != nil {
		return nil, err
	}
	if out.ClientCAs, err = authorities(t.ClientCAFile); err != nil {
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
