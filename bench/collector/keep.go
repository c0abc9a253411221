package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
)

// keepConfig configures the exporter keep: log records as lines of OTLP/JSON, which are on the
// disk when the request is answered; without a path it drops them.
type keepConfig struct {
	Path string `mapstructure:"path"`
}

// newKeep returns the exporter that `make bench-otlp` compares with Earshot's journal.
func newKeep() exporter.Factory {
	return exporter.NewFactory(component.MustNewType("keep"), func() component.Config { return &keepConfig{} },
		exporter.WithLogs(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Logs, error) {
			k := &keep{path: c.(*keepConfig).Path}
			var err error
			if k.path != "" {
				k.file, err = os.OpenFile(k.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			}
			return k, err
		}, component.StabilityLevelDevelopment))
}

type keep struct {
	path    string
	mu      sync.Mutex
	file    *os.File
	marshal plog.JSONMarshaler
}

func (k *keep) Start(context.Context, component.Host) error { return nil }

func (k *keep) Shutdown(context.Context) error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}

func (k *keep) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (k *keep) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	if k.file == nil {
		return nil
	}
	b, err := k.marshal.MarshalLogs(logs)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err = k.file.Write(append(b, '\n'))
	return errors.Join(err, k.file.Sync())
}
