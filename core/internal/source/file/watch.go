package file

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
)

// watcher reports changes in directories. It may miss some: the poll finds those.
type watcher interface {
	// Add watches a directory. One that is watched already gets its present name.
	Add(dir string) error
	Events() <-chan []event
	Close() error
}

// event is one change.
type event struct {
	kind eventKind
	path string
}

type eventKind uint8

const (
	wrote      eventKind = iota // to the file
	appeared                    // a file or directory, or its permissions
	deleted                     // the file or directory
	movedAway                   // the file or directory
	dirMoved                    // the watched directory itself, or it is gone
	overflowed                  // some events are lost
)

var errNoWatcher = errors.New("no notifications")

// polled watches nothing.
type polled struct{}

func (polled) Add(string) error       { return nil }
func (polled) Events() <-chan []event { return nil }
func (polled) Close() error           { return nil }

func noWatcher() (watcher, error) { return nil, errNoWatcher }

// directories are the directories below the patterns, with the states of the patterns
// there, and their watches.
type directories struct {
	*Settings
	watcher watcher
	states  map[string][]matchState
	full    bool // the limit of watches is reached
}

func newDirectories(ctx context.Context, settings *Settings, open func() (watcher, error)) *directories {
	w, err := open()
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, errNoWatcher) {
			level = slog.LevelInfo
		}
		settings.Logger.Log(ctx, level, "files are polled", "interval", settings.PollInterval, "cause", err)
		w = polled{}
	}
	return &directories{watcher: w, states: make(map[string][]matchState), Settings: settings}
}

func (d *directories) has(dir string) bool {
	_, ok := d.states[dir]
	return ok
}

// enter adds a directory that a walk enters.
func (d *directories) enter(dir string, at []matchState) {
	if !d.has(dir) {
		d.watch(dir)
	}
	d.states[dir] = at
}

// reset removes all directories before a walk adds those that there are now.
func (d *directories) reset() { d.states = make(map[string][]matchState, len(d.states)) }

// watch watches a directory. One that cannot be watched is polled, which is logged once.
func (d *directories) watch(dir string) {
	err := d.watcher.Add(dir)
	switch {
	case err == nil || notFound(err):
	case !errors.Is(err, syscall.ENOSPC):
		d.Logger.Debug("directory is polled", "path", dir, "cause", err)
	case !d.full:
		d.full = true
		d.Logger.Warn("limit of watches reached: some directories are polled",
			"interval", d.PollInterval, "cause", err)
	}
}
