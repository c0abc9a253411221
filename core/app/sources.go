package app

import (
	"context"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/source/file"
)

// add adds a configured source.
func (r *runner) add(ctx context.Context, c *config.Source) error {
	add := r.addLive
	if c.Type == config.TypeFile {
		add = r.addFile
	}
	if err := add(ctx, c); err != nil {
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

// addFile adds a source of files, which are read again from where they are: what
// is redacted is so on the way.
func (r *runner) addFile(ctx context.Context, c *config.Source) error {
	info, err := r.decoder(ctx, c.Format)
	if err != nil {
		return err
	}
	f := c.File
	src, err := file.New(file.Settings{
		Name: c.Name, Paths: f.Paths, Exclude: f.Exclude, StartAt: file.StartAt(f.StartAt), MaxLine: int(f.MaxLine),
		PollInterval: time.Duration(f.PollInterval), IgnoreOlderThan: time.Duration(f.IgnoreOlderThan),
		MetadataFiles: info.MetadataFiles, Logger: r.Logger,
	})
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
