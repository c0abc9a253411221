package app

import (
	"context"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/file"
)

// add adds a configured source, and the decoder of its format if it is the first
// of it.
func (r *runner) add(ctx context.Context, c *config.Source) error {
	launch, err := r.Decoders.launch(r.Config, c.Format, r.sockets, r.Logger)
	if err != nil {
		return fmt.Errorf("source %s: %w", c.Name, err)
	}
	info, err := r.pipeline.AddFormat(ctx, c.Format, func(ctx context.Context) (*host.Process, error) { return host.Start(ctx, launch) })
	if err != nil {
		return fmt.Errorf("source %s: %w", c.Name, err)
	}
	src, err := r.build(c, info)
	if err != nil {
		return fmt.Errorf("source %s: %w", c.Name, err)
	}
	sink, err := r.pipeline.AddFeed(c.Name, c.Tenant, c.Format, string(c.Options), c.Type != config.TypeFile)
	if err != nil {
		return err
	}
	r.sources = append(r.sources, feed{c.Name, src, sink})
	return nil
}

// build makes the source that the configuration describes.
func (r *runner) build(c *config.Source, info decoder.Info) (source.Source, error) {
	switch c.Type {
	case config.TypeFile:
		f := c.File
		return file.New(file.Settings{
			Name: c.Name, Paths: f.Paths, Exclude: f.Exclude, StartAt: file.StartAt(f.StartAt), MaxLine: int(f.MaxLine),
			PollInterval: time.Duration(f.PollInterval), IgnoreOlderThan: time.Duration(f.IgnoreOlderThan),
			Companions: info.Companions, Logger: r.Logger,
		})
	}
	return nil, fmt.Errorf("type %s: not built yet", c.Type)
}
