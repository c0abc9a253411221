package file

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// StartAt says where the files that are already there are read from when the
// source runs for the first time.
type StartAt string

// The places to start at. A file that appears later is always read from its
// beginning, and a file that was read before from where that ended.
const (
	Beginning StartAt = "beginning"
	End       StartAt = "end" // from the line that is being written
)

// Settings say what to tail.
type Settings struct {
	Name string // of the source, for the log
	// Paths are glob patterns of the files to tail; ** stands for any number of
	// directories. Relative ones are taken from the working directory.
	Paths []string
	// Exclude are patterns of paths to leave out. One without a slash is matched
	// against the name alone.
	Exclude []string
	// MetadataFiles are patterns relative to the directory of a tailed file. Every file
	// that matches is a stream of one Body frame, and a new stream when it changes.
	MetadataFiles []string

	StartAt         StartAt       // empty: Beginning
	IgnoreOlderThan time.Duration // leave out files last modified longer ago than this and never read; 0: none

	MaxLine int // bytes of the longest line that is kept whole; 0: 64 MiB
	MaxRead int // bytes of a batch that no long line needs; 0: 256 KiB
	MaxOpen int // descriptors kept open of files with nothing to read; 0: 256

	PollInterval time.Duration // between scans, at least; 0: 5 s
	PollOnly     bool          // do not use inotify
	// Linger is how long a stream whose file is gone is remembered, so that a copy or
	// an archive of it is recognized; 0: 1 min.
	Linger time.Duration

	Logger *slog.Logger // nil: none
	_      struct{}
}

func (s *Settings) setDefaults() {
	def(&s.StartAt, Beginning)
	def(&s.MaxLine, 64<<20)
	def(&s.MaxRead, 256<<10)
	def(&s.MaxOpen, 256)
	def(&s.PollInterval, 5*time.Second)
	def(&s.Linger, time.Minute)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func (s *Settings) validate() error {
	switch {
	case len(s.Paths) == 0:
		return errors.New("paths: none given")
	case s.StartAt != Beginning && s.StartAt != End:
		return fmt.Errorf("start_at %q: neither %s nor %s", s.StartAt, Beginning, End)
	case s.MaxLine < 0, s.MaxRead < 0, s.MaxOpen < 0:
		return errors.New("a limit is negative")
	case s.PollInterval < 0, s.Linger < 0, s.IgnoreOlderThan < 0:
		return errors.New("a duration is negative")
	}
	return nil
}

// New returns a source, or an error that names the bad setting.
func New(settings Settings) (*Source, error) {
	settings.setDefaults()
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("file source %s: %w", settings.Name, err)
	}
	patterns, err := compile(settings.Paths, settings.MetadataFiles, settings.Exclude)
	if err != nil {
		return nil, fmt.Errorf("file source %s: %w", settings.Name, err)
	}
	s := &Source{
		Settings: settings,
		patterns: patterns,
		lines:    newLines(settings.MaxLine, settings.MaxRead),
		watch:    newInotify,
		open:     openFile,
		readDir:  os.ReadDir,
		workers:  2,
		whole:    2 * time.Second,
		held:     true,
		byID:     make(map[inode]*file),
		byPath:   make(map[string]*file),
		rotated:  make(map[string][]*file),
		keys:     make(map[string]struct{}),
		ghosts:   make(map[string][]*file),
		pending:  make(map[string]int),
		trying:   make(map[string]bool),
		dirs:     make(map[string][]spot),
		troubles: make(map[string]string),
		wake:     make(chan struct{}, 1),
	}
	s.plain.cond = sync.NewCond(&s.mu)
	s.packed.cond = sync.NewCond(&s.mu)
	if settings.PollOnly {
		s.watch = noWatcher
	}
	return s, nil
}

// absolute returns path from the root of the file system, with no dots in it.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	return abs, nil
}

var _ source.Source = (*Source)(nil)
