// Package exporters lists the exporters. Each is a folder: its configuration, its
// constructor and its text in config.example.yaml are in its config.go.
package exporters

import (
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
	"github.com/earshot-dev/earshot/exporters/notify"
	"github.com/earshot-dev/earshot/exporters/otel"
)

// Types are the exporters, in the order in which a batch is offered to them.
func Types() []spec.Type {
	return append([]spec.Type{
		clickhouse.Type(),
		otel.Type(),
	}, notify.Types()...)
}
