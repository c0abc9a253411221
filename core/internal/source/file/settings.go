package file

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
)

// StartAt is the place from which existing files are read when the source runs for the
// first time.
type StartAt string

// The places to start at. A file that appears later is always read from its
// beginning, and a file that was read before from where that ended.
const (
	Beginning StartAt = "beginning"
	End       StartAt = "end" // from the line that is being written
)

// Settings configure a source.
type Settings struct {
	Name string // of the source, for the log
	// Paths are glob patterns of the files to tail; ** matches any number of
	// directories. Relative ones are taken from the working directory.
	Paths []string
	// Exclude are patterns of paths to leave out. One without a slash is matched
	// against the name alone.
	Exclude []string
	// MetadataFiles are patterns relative to the directory of a tailed file. Every file
	// that matches is a stream of one Body frame, and a new stream when it changes.
	MetadataFiles []string
	// Documents are patterns of names. A file of Paths with such a name is one JSON document:
	// a stream of one Body frame, and a new stream when it changes. So is one of any name whose
	// first line is { or [ alone, if there are patterns.
	Documents []string

	StartAt         StartAt       // empty: Beginning
	IgnoreOlderThan time.Duration // leave out files last modified longer ago than this and never read; 0: none
	NewestFirst     bool          // begin with the files that changed last

	// FollowSymlinks reads also the files that symbolic links lead to outside of the directory in front
	// of a pattern's wildcards. Any writer there can have the sidecar read any file then.
	FollowSymlinks bool
	// Owners are users, by name or id, whose files are read; none: everybody's.
	Owners []string

	MaxLine int // bytes of the longest line that is kept whole; 0: 64 MiB
	MaxRead int // bytes of a batch that no long line needs; 0: 256 KiB
	MaxOpen int // descriptors kept open of files with nothing to read; 0: 256

	PollInterval time.Duration // between scans, at least; 0: 5 s
	PollOnly     bool          // do not use inotify
	// Linger is how long an orphaned stream is kept, so that a copy or an archive of its
	// file is recognized; 0: 1 min.
	Linger time.Duration

	Logger *slog.Logger // nil: none
	_      struct{}
}

func (s *Settings) setDefaults() {
	s.StartAt = cmp.Or(s.StartAt, Beginning)
	s.MaxLine = cmp.Or(s.MaxLine, 64<<20)
	s.MaxRead = cmp.Or(s.MaxRead, 256<<10)
	s.MaxOpen = cmp.Or(s.MaxOpen, 256)
	s.PollInterval = cmp.Or(s.PollInterval, 5*time.Second)
	s.Linger = cmp.Or(s.Linger, time.Minute)
}

func (s *Settings) validate() error {
	switch {
	case len(s.Paths) == 0:
		return errors.New("paths: empty")
	case s.StartAt != Beginning && s.StartAt != End:
		return fmt.Errorf("start_at %q: neither %s nor %s", s.StartAt, Beginning, End)
	case s.MaxLine < 0, s.MaxRead < 0, s.MaxOpen < 0:
		return errors.New("a limit is negative")
	case s.PollInterval < 0, s.Linger < 0, s.IgnoreOlderThan < 0:
		return errors.New("a duration is negative")
	}
	return nil
}

// absolute returns path from the root of the file system, with no dots in it.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	return abs, nil
}
