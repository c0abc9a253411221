package journal

import (
	"errors"
	"log/slog"
	"time"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

// Policy decides between new and old frames when the journal is full.
type Policy string

// The policies.
const (
	DropOldest   Policy = "drop_oldest"
	Backpressure Policy = "backpressure"
)

// Settings of a journal; the zero value of each but Dir is its default.
type Settings struct {
	Dir           string
	SegmentSize   int64         // bytes of a segment; 64 MiB
	MaxSize       int64         // bytes of all segments; 4 GiB
	MaxAge        time.Duration // of a segment; a week
	Keep          time.Duration // how long segments that are safe stay, while there is room; not at all
	MinFree       int64         // bytes of the disk to leave to others; none
	WhenFull      Policy        // DropOldest
	FsyncInterval time.Duration // the longest time that a power cut may cost; 100 ms
	MaxPending    int64         // bytes in memory that are not on disk yet; 8 MiB
	Logger        *slog.Logger

	sweep   time.Duration // how often to look for segments that can go; 1 s
	retry   time.Duration // the first pause after a failed write, twice that after a failed read, a 40th of how long Close tries to write; 50 ms
	reclose time.Duration // the pause before a stream that could not be closed is closed again; 5 s
	disk    segment.Disk
}

func (s *Settings) defaults() error {
	if s.Dir == "" {
		return errors.New("no directory")
	}
	size := func(n *int64, v int64) {
		if *n <= 0 {
			*n = v
		}
	}
	span := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	size(&s.SegmentSize, 64<<20)
	size(&s.MaxSize, 4<<30)
	size(&s.MaxPending, 8<<20)
	span(&s.MaxAge, 7*24*time.Hour)
	span(&s.FsyncInterval, 100*time.Millisecond)
	span(&s.sweep, time.Second)
	span(&s.retry, 50*time.Millisecond)
	span(&s.reclose, 5*time.Second)
	switch s.WhenFull {
	case "":
		s.WhenFull = DropOldest
	case DropOldest, Backpressure:
	default:
		return errors.New("no policy " + string(s.WhenFull))
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.disk == nil {
		s.disk = segment.OS{}
	}
	return nil
}

// Errors of recordings.
var (
	// ErrClosed means that the journal or the recording was closed.
	ErrClosed = errors.New("journal closed")
	// ErrDropped means that frames since the last Sync were counted as a gap: there
	// was no room for them.
	ErrDropped = errors.New("journal full: frames were dropped")
	errFull    = errors.New("journal full")
)
