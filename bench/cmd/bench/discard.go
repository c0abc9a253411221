package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/exporters"
	"github.com/earshot-dev/earshot/plugins"
)

// discard runs the sidecar with an exporter that drops every batch.
func discard(ctx context.Context, path string) error {
	c, err := config.Types{Sources: app.SourceTypes(), Exporters: exporters.Types()}.Load(path, os.LookupEnv)
	if err != nil {
		return err
	}
	app.BoundMemory(ctx) // as the command run does
	return app.Run(ctx, app.Settings{
		Config: c, UntilIdle: 300 * time.Millisecond,
		Decoders: app.Decoders{Names: slices.Sorted(maps.Keys(plugins.Bundled())), Args: func(name string) []string { return []string{"decoder", name} }},
		Exporters: func(context.Context, string) ([]app.Exporter, error) {
			return []app.Exporter{{Name: "nowhere", Exporter: discardExporter{}}}, nil
		},
	})
}

type discardExporter struct{}

func (discardExporter) Export(context.Context, *export.Batch) error { return nil }
func (discardExporter) Close(context.Context) error                 { return nil }

// decode serves a decoder of that sidecar.
func decode(format string) { sdk.Serve(plugins.Bundled()[format]()) }
