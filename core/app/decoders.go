package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/store"
	"github.com/earshot-dev/earshot/core/sandbox"
)

// Decoders knows the bundled decoders: their names, and the arguments with which
// this executable becomes one of them, or enters a decoder's cell (none: no cells).
type Decoders struct {
	Names []string
	Args  func(name string) []string
	Cell  []string
}

// Decoder is a decoder that is there to be used.
type Decoder struct {
	Name    string
	Path    string // of the executable; empty for a bundled one
	Info    decoder.Info
	Problem string // why it does not start
	// Shadowed: a bundled decoder has its name and is used in its place.
	Shadowed bool
}

// launch returns the settings with which the decoder of a format is started.
func (d Decoders) launch(c *config.Config, name, sockets string, log *slog.Logger) (host.Settings, error) {
	p, ok := c.Plugins[name]
	if !ok {
		p = config.DefaultPlugin()
	}
	s := host.Settings{
		Name: name, SHA256: p.SHA256, SocketDir: sockets, StartTimeout: time.Duration(p.Timeout), CallTimeout: time.Duration(p.Timeout),
		MemoryLimit: int64(p.MemoryLimit), AutoMTLS: p.AutoMTLS, Logger: log,
		Cell: d.Cell, Off: p.Sandbox.Off,
		Rules: sandbox.Rules{Execute: p.Sandbox.Read, Write: p.Sandbox.Write, Network: p.Sandbox.Network, Processes: p.Sandbox.Processes},
	}
	for _, key := range p.Env {
		if v, ok := os.LookupEnv(key); ok {
			s.Env = append(s.Env, key+"="+v)
		}
	}
	if p.MemoryLimit > 0 { // Go decoders keep below it; the host ends any that does not
		s.Env = append(s.Env, fmt.Sprintf("GOMEMLIMIT=%d", int64(p.MemoryLimit)*9/10))
	}
	bundled := slices.Contains(d.Names, name)
	if path := inPluginDir(c, name); path != "" && (!bundled || p.ReplaceBundled) {
		err := trusted(c.PluginDir)
		if err == nil {
			err = trusted(path)
		}
		if err != nil {
			return s, fmt.Errorf("format %s: plugin_dir: %w", name, err)
		}
		s.Path = path
		return s, nil
	}
	if bundled && p.ReplaceBundled {
		return s, fmt.Errorf("format %s: plugins.%s.replace_bundled is set, and plugin_dir has no %s", name, name, name)
	}
	if !bundled {
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

// inPluginDir is the path of a format's file in plugin_dir; empty without one.
func inPluginDir(c *config.Config, name string) string {
	if c.PluginDir == "" {
		return ""
	}
	path := filepath.Join(c.PluginDir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// Shadowed are the files in plugin_dir that are named like a bundled decoder and are not used.
func (d Decoders) Shadowed(c *config.Config) (out []Decoder) {
	for _, name := range d.Names {
		if path := inPluginDir(c, name); path != "" && !c.Plugins[name].ReplaceBundled {
			out = append(out, Decoder{Name: name, Path: path, Shadowed: true, Problem: fmt.Sprintf(
				"not used: the bundled decoder %s is, unless plugins.%s.replace_bundled is true", name, name)})
		}
	}
	return out
}

// Warnings are sentences about decoders that a run would use or not use in a way that may not be
// meant.
func (d Decoders) Warnings(c *config.Config) (out []string) {
	for _, s := range d.Shadowed(c) {
		out = append(out, s.Path+": "+s.Problem)
	}
	if len(d.Cell) > 0 && sandbox.Level() == 0 {
		out = append(out, "this system has no Landlock (Linux 5.13): a decoder may open every file that this user may")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if p := c.Plugins[name]; p.Sandbox.Off {
			out = append(out, fmt.Sprintf("plugins.%s.sandbox is off: the decoder has all rights of this user", name))
		}
	}
	return out
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
	out := d.Shadowed(c)
	for _, name := range names {
		item := Decoder{Name: name}
		err := d.With(ctx, c, name, func(p *host.Process, s host.Settings) error {
			item.Info = p.Info()
			if len(s.Args) == 0 {
				item.Path = s.Path
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			item.Problem = err.Error()
			if !slices.Contains(d.Names, name) {
				item.Path = inPluginDir(c, name)
			}
		}
		out = append(out, item)
	}
	slices.SortStableFunc(out, func(a, b Decoder) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// With runs the decoder of a format for as long as f takes.
func (d Decoders) With(ctx context.Context, c *config.Config, name string, f func(*host.Process, host.Settings) error) error {
	sockets, remove, err := store.OwnedDir(os.TempDir())
	if err != nil {
		return err
	}
	defer remove()
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
	if c.PluginDir != "" {
		if err := trusted(c.PluginDir); err != nil {
			out = append(out, c.Problem("plugin_dir", err.Error(), ""))
		}
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		at := fmt.Sprintf("sources[%d].", i)
		for _, format := range s.Formats() {
			options := ""
			if format == s.Format {
				options = string(s.Options)
			}
			if err := d.Has(c, format); err != nil {
				out = append(out, c.Problem(at+"format", err.Error(), spec.DidYouMean(format, d.Names)))
				continue
			}
			err := d.With(ctx, c, format, func(p *host.Process, _ host.Settings) error {
				problems, err := p.Check(ctx, options)
				for _, text := range problems {
					out = append(out, c.Problem(at+"options", text, ""))
				}
				return err
			})
			if err != nil {
				out = append(out, c.Problem(at+"format", err.Error(), ""))
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}
