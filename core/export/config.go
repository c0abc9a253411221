package export

import (
	"context"
	"log/slog"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/semconv"
)

// Config is the configuration of an exporter.
type Config interface {
	spec.Section
	NewExporter(context.Context, Env) (Exporter, error)
}

// Env holds the values that an exporter gets from the sidecar beside its own configuration.
type Env struct {
	Name         string           // of the exporter in the configuration
	StoreDSN     string           // of the embedded store; empty when none runs
	Profile      *semconv.Profile // names the spans
	Prices       *price.Table
	Dimensions   []attribution.Rule // of whose work a turn is
	Budgets      []attribution.Budget
	SilentAfter  time.Duration // see config.Now
	StoreMaxAge  time.Duration // of the rows of the embedded store
	StoreMaxSize int64         // bytes of its tables
	StateDir     string        // has a folder for each type of exporter that keeps files; empty: none are kept
	Chosen       bool          // the records were chosen before: an exporter that samples sends all
	TempDir      string        // for files that end with the process; empty: none
	Logger       *slog.Logger
}
