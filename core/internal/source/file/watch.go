package file

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
)

// watcher tells what happens in directories. It may miss things: the poll
// finds them.
type watcher interface {
	// Add watches a directory, or gives the name it has now to one that is watched.
	Add(dir string) error
	Events() <-chan []event
	Close() error
}

// event is one thing that happened.
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

func noWatcher() (watcher, error) { return nil, errNoWatcher }

func (s *Source) startWatching(ctx context.Context) {
	w, err := s.watch()
	if err == nil {
		s.watching = w
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, errNoWatcher) {
		level = slog.LevelInfo
	}
	s.Logger.Log(ctx, level, "files are polled", "source", s.Name, "interval", s.PollInterval, "cause", err)
}

func (s *Source) stopWatching() {
	if s.watching != nil {
		s.watching.Close()
	}
}

func (s *Source) events() <-chan []event {
	if s.watching == nil {
		return nil
	}
	return s.watching.Events()
}

// watchDir watches a directory. Where that is not possible it is polled, which is
// said once.
func (s *Source) watchDir(dir string) {
	if s.watching == nil {
		return
	}
	err := s.watching.Add(dir)
	if err == nil || gone(err) {
		return
	}
	if errors.Is(err, syscall.ENOSPC) {
		if !s.full {
			s.full = true
			s.Logger.Warn("inotify watch limit reached: some directories are polled", "source", s.Name,
				"interval", s.PollInterval, "limit", "/proc/sys/fs/inotify/max_user_watches")
		}
		return
	}
	s.Logger.Debug("directory is polled", "source", s.Name, "path", dir, "cause", err)
}
