package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Source follows databases.
type Source struct {
	Config
	source.Env
	tables   []Table
	interval time.Duration
	recorder source.Recorder
	pool     *pool
	open     map[string]*database
	searched time.Time
	idle     atomic.Bool
}

const (
	searchPause  = 10 * time.Second // between two looks for new databases
	maxDatabases = 1000
)

// New returns a source, or an error that names the bad setting.
func New(c Config, env source.Env) (*Source, error) {
	if c.Interval == 0 {
		c.Interval = spec.Duration(defaultInterval)
	}
	if c.MaxRow == 0 {
		c.MaxRow = defaultMaxRow
	}
	if err := spec.Validate(&c); err != nil {
		return nil, fmt.Errorf("sqlite %s: %w", env.Name, err)
	}
	s := &Source{Config: c, Env: env, tables: c.Tables, interval: time.Duration(c.Interval), open: make(map[string]*database)}
	if len(s.tables) == 0 {
		var described Tables
		if err := source.ParsePreset(env.Formats[env.Format].Tables, &described); err != nil {
			return nil, fmt.Errorf("sqlite %s: tables: %w", env.Name, err)
		}
		s.tables = described.Tables
	}
	if len(s.tables) == 0 {
		return nil, fmt.Errorf("sqlite %s: tables: required, since the decoder of %s describes none", env.Name, env.Format)
	}
	s.Logger = env.Log()
	return s, nil
}

var _ source.Listener = (*Source)(nil)

// Idle implements source.Listener: each database was read as it is.
func (s *Source) Idle() bool { return s.idle.Load() }

// Run implements source.Listener. It may be called once.
func (s *Source) Run(ctx context.Context, rec source.Recorder) (err error) {
	s.recorder = rec
	if s.pool, err = newPool(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.pool.fs.Close()) }()
	defer s.end()
	for {
		idle := s.round(ctx)
		s.idle.Store(idle && ctx.Err() == nil)
		if !retry.Wait(ctx, s.interval) {
			return nil
		}
	}
}

// end closes the databases, and stores how far each database was read.
func (s *Source) end() {
	for _, d := range s.open {
		d.close()
		if err := d.mark(true); err != nil {
			d.Logger.Warn("not stored how far it was read; it is read again", "database", d.path, "error", err)
		}
	}
}

// round reads the changes of all databases.
func (s *Source) round(ctx context.Context) (idle bool) {
	if time.Since(s.searched) > searchPause {
		s.search()
		s.searched = time.Now()
	}
	idle = true
	for _, d := range s.open {
		quiet, err := d.poll(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errBusy) {
			s.Logger.Warn("not read; it is read again", "database", d.path, "error", err)
		}
		idle = idle && quiet
	}
	return idle
}

// search finds new databases.
func (s *Source) search() {
	err := s.each(func(tree, path string) bool {
		if s.open[path] != nil {
			return true
		}
		if len(s.open) >= maxDatabases {
			s.Logger.Warn("too many databases; the others are not read", "most", maxDatabases)
			return false
		}
		s.open[path] = &database{
			Source: s, tree: tree, path: path, sums: new(sums), highest: make([]int64, len(s.tables)), problems: make(map[string]bool),
			backoff: retry.Backoff{Min: s.interval, Max: time.Minute},
		}
		return true
	})
	if err != nil {
		s.Logger.Warn("not searched", "error", err)
	}
}

// each calls visit with the files that match, and the directory in front of the wildcards of their pattern, until it returns false.
func (c *Config) each(visit func(tree, path string) bool) (failed error) {
	for _, pattern := range c.Paths {
		found, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly())
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", pattern, err))
		}
		slices.Sort(found)
		tree, _ := doublestar.SplitPattern(filepath.ToSlash(pattern))
		if abs, err := filepath.Abs(filepath.FromSlash(tree)); err == nil {
			tree = abs
		}
		for _, path := range found {
			if strings.HasSuffix(path, "-wal") || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "-journal") {
				continue
			}
			if abs, err := filepath.Abs(path); err == nil {
				path = abs
			}
			if !visit(tree, path) {
				return failed
			}
		}
	}
	return failed
}

// List returns the databases that match now, and calls refused for each that cannot be read, with the reason.
func (c *Config) List(refused func(path string, err error)) (databases []string, err error) {
	err = c.each(func(tree, path string) bool {
		s, err := openSnapshot(tree, path, nil)
		switch {
		case err == nil:
			s.Close()
			databases = append(databases, path)
		case errors.Is(err, errBusy):
			databases = append(databases, path)
		case !errors.Is(err, fs.ErrNotExist):
			refused(path, err)
		}
		return true
	})
	return databases, err
}
