package app

import (
	"context"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/meter"
	"github.com/earshot-dev/earshot/core/semconv"
)

// meter returns the function that counts committed batches. A backfill counts nothing: the
// first decoding has.
func (r *runner) meter(ctx context.Context) (func(*export.Batch), error) {
	if r.backfill != nil {
		return nil, nil
	}
	profile, err := semconv.New(r.Config.Exporters.Semconv)
	if err != nil {
		return nil, err
	}
	var readers []sdkmetric.Reader
	if r.Readers != nil {
		if readers, err = r.Readers(ctx); err != nil {
			return nil, err
		}
	}
	m, err := meter.New(profile, r.metrics, readers...)
	if err != nil {
		return nil, err
	}
	r.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			r.Logger.Warn("the last metrics were not sent", "error", err)
		}
	})
	return m.Record, nil
}
