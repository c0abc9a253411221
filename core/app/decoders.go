package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
)

// Decoders knows the bundled decoders: their names, and the arguments with which
// this executable becomes one of them.
type Decoders struct {
	Names []string
	Args  func(name string) []string
}

// Decoder is a decoder that is there to be used.
type Decoder struct {
	Name    string
	Path    string // of the executable; empty for a bundled one
	Info    decoder.Info
	Problem string // why it does not start
}

// gcPercent is how far the heap of a decoder written in Go may grow between two
// collections. Most of the live heap is buffers of frames, which have no pointers and cost
// a collection nothing, and little is allocated for a message, so it is done sooner than
// usual: a sidecar is a guest on the machine of the agent.
const gcPercent = 30

// launch returns the settings with which the decoder of a format is started.
func (d Decoders) launch(c *config.Config, name, sockets string, log *slog.Logger) (host.Settings, error) {
	p, ok := c.Plugins[name]
	if !ok {
		p = config.DefaultPlugin()
	}
	s := host.Settings{
		Name: name, SHA256: p.SHA256, SocketDir: sockets, StartTimeout: time.Duration(p.Timeout), CallTimeout: time.Duration(p.Timeout),
		MemoryLimit: int64(p.MemoryLimit), AutoMTLS: p.AutoMTLS, Logger: log,
	}
	s.Env = append(s.Env, fmt.Sprintf("GOGC=%d", gcPercent)) // of decoders written in Go; Env may override it
	for _, key := range p.Env {
		if v, ok := os.LookupEnv(key); ok {
			s.Env = append(s.Env, key+"="+v)
		}
	}
	if p.MemoryLimit > 0 { // Go decoders keep below it; the host ends any that does not
		s.Env = append(s.Env, fmt.Sprintf("GOMEMLIMIT=%d", int64(p.MemoryLimit)*9/10))
	}
	if c.PluginDir != "" {
		path := filepath.Join(c.PluginDir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.Path = path
			return s, nil
		}
	}
	if !slices.Contains(d.Names, name) {
		where := "plugin_dir is not set"
		if c.PluginDir != "" {
			where = "there is none in " + c.PluginDir
		}
		return s, fmt.Errorf("format %s: no such decoder: bundled are %s; %s", name, strings.Join(d.Names, " "), where)
	}
	exe, err := os.Executable()
	if err != nil {
		return s, fmt.Errorf("format %s: %w", name, err)
	}
	s.Path, s.Args = exe, d.Args(name)
	return s, nil
}

// Has returns the reason why there is no decoder of a format.
func (d Decoders) Has(c *config.Config, name string) error {
	_, err := d.launch(c, name, "", nil)
	return err
}

// List starts every decoder, bundled and in plugin_dir, and returns how each
// describes itself.
func (d Decoders) List(ctx context.Context, c *config.Config) ([]Decoder, error) {
	names := slices.Clone(d.Names)
	if c.PluginDir != "" {
		entries, err := os.ReadDir(c.PluginDir)
		if err != nil {
			return nil, fmt.Errorf("plugin_dir: %w", err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	out := make([]Decoder, 0, len(names))
	for _, name := range names {
		item := Decoder{Name: name}
		err := d.With(ctx, c, name, func(p *host.Process, s host.Settings) error {
			item.Info = p.Info()
			if len(s.Args) == 0 {
				item.Path = s.Path
			}
			return nil
		})
		if err != nil {
			item.Problem = err.Error()
		}
		out = append(out, item)
	}
	return out, nil
}

// With runs the decoder of a format for as long as f takes.
func (d Decoders) With(ctx context.Context, c *config.Config, name string, f func(*host.Process, host.Settings) error) error {
	sockets, err := os.MkdirTemp("", "earshot-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sockets)
	s, err := d.launch(c, name, sockets, nil)
	if err != nil {
		return err
	}
	p, err := host.Start(ctx, s)
	if err != nil {
		return err
	}
	defer p.Kill()
	return f(p, s)
}

// Check starts the decoders that the sources name and asks each whether it takes
// the source's options.
func (d Decoders) Check(ctx context.Context, c *config.Config) ([]config.Problem, error) {
	var out []config.Problem
	for i := range c.Sources {
		s := &c.Sources[i]
		at := fmt.Sprintf("sources[%d].", i)
		if err := d.Has(c, s.Format); err != nil {
			out = append(out, c.Problem(at+"format", err.Error(), spec.DidYouMean(s.Format, d.Names)))
			continue
		}
		err := d.With(ctx, c, s.Format, func(p *host.Process, _ host.Settings) error {
			problems, err := p.Check(ctx, string(s.Options))
			for _, text := range problems {
				out = append(out, c.Problem(at+"options", text, ""))
			}
			return err
		})
		if err != nil {
			out = append(out, c.Problem(at+"format", err.Error(), ""))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}
