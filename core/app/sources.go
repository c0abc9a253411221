package app

import (
	"context"
	"fmt"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// add adds a configured source.
func (r *runner) add(ctx context.Context, c *config.Source) error {
	var err error
	switch section := c.Section.(type) {
	case source.Rereadable:
		err = r.addRereadable(ctx, c, section)
	case source.Live:
		err = r.addLive(ctx, c, section)
	default:
		err = fmt.Errorf("type %q: not a source", c.Type)
	}
	if err != nil {
		return fmt.Errorf("source %s: %w", c.Name, err)
	}
	return nil
}

// decoder starts the decoder of a format, unless it runs already.
func (r *runner) decoder(ctx context.Context, format string) (decoder.Info, error) {
	launch, err := r.Decoders.launch(r.Config, format, r.sockets, r.Logger)
	if err != nil {
		return decoder.Info{}, err
	}
	return r.pipeline.AddFormat(ctx, format, func(ctx context.Context) (*host.Process, error) { return host.Start(ctx, launch) })
}

// addRereadable adds a source that is its own journal. Its frames are redacted on the way
// to the pipeline.
func (r *runner) addRereadable(ctx context.Context, c *config.Source, section source.Rereadable) error {
	info, err := r.decoder(ctx, c.Format)
	if err != nil {
		return err
	}
	env := r.env(c)
	env.MetadataFiles = info.MetadataFiles
	src, err := section.NewSource(env)
	if err != nil {
		return err
	}
	sink, err := r.pipeline.AddFeed(c.Name, c.Tenant, c.Format, string(c.Options), false)
	if err != nil {
		return err
	}
	r.sources = append(r.sources, &feed{config: *c, source: src, sink: r.redactor.Sink(r.peek.Sink(c.Name, c.Format, sink)), feed: sink})
	return nil
}

// env is what a source gets from the sidecar.
func (r *runner) env(c *config.Source) source.Env {
	return source.Env{Name: c.Name, Format: c.Format, Connections: r.connections, Logger: r.Logger}
}
