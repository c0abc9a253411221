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

// decoders starts the decoders of a source's formats, and returns how they describe them.
func (r *runner) decoders(ctx context.Context, c *config.Source) (map[string]source.Format, error) {
	out := make(map[string]source.Format)
	for _, format := range c.Formats() {
		info, err := r.decoder(ctx, format)
		if err != nil {
			return nil, err
		}
		out[format] = described(&info)
	}
	return out, nil
}

// addRereadable adds a source that is its own journal. Its frames are redacted on the way
// to the pipeline.
func (r *runner) addRereadable(ctx context.Context, c *config.Source, section source.Rereadable) error {
	info, err := r.decoder(ctx, c.Format)
	if err != nil {
		return err
	}
	src, err := section.NewSource(r.env(c, map[string]source.Format{c.Format: described(&info)}))
	if err != nil {
		return err
	}
	sink, err := r.pipeline.AddFeed(c.Name, c.Tenant, c.Format, string(c.Options), false)
	if err != nil {
		return err
	}
	if err := redactMessages(c, r.redactor, r.Config.Redact.HashSalt.Reveal(), r.metrics, sink); err != nil {
		return err
	}
	sink.SetFiles(src)
	sink.Resume(ctx)
	r.sources = append(r.sources, &feed{config: *c, source: src, sink: r.redactor.Sink(r.liveTail.Sink(c.Name, c.Format, sink)), pipeline: sink})
	return nil
}

// env is the part of the sidecar that a source sees.
func (r *runner) env(c *config.Source, formats map[string]source.Format) source.Env {
	return source.Env{Name: c.Name, Format: c.Format, Formats: formats, Connections: r.connections, Logger: r.Logger}
}

// described is how a decoder describes the traffic of its format.
func described(info *decoder.Info) source.Format {
	return source.Format{MetadataFiles: info.MetadataFiles, Documents: info.Documents, Resume: info.Resume, Pages: info.Pages, Tables: info.Tables}
}
