package app

import (
	"context"
	"time"

	"github.com/earshot-dev/earshot/core/internal/pipeline"
)

// Progress counts the work that a sidecar has done since its start, and the rest of a backlog.
type Progress struct {
	pipeline.Progress
	FilesLeft int   // files of before the start that are not read to their end
	BytesLeft int64 // about how many bytes that is, as files have them, with those that wait for their decoder
	Stored    bool  // every exporter has accepted all that was delivered
}

// progressEvery is how often progress is reported while there is any; else it is once a second.
const progressEvery = 100 * time.Millisecond

// backlogMeter measures progress. It looks at the files once a second: there may be many thousands.
type backlogMeter struct {
	looked    time.Time
	files     int
	bytes     int64
	delivered int64 // when it looked
	stored    int64 // so much was delivered when every exporter had accepted all of it
}

// read returns the progress of a sidecar at a time.
func (m *backlogMeter) read(ctx context.Context, r *runner, now time.Time) Progress {
	p := Progress{Progress: r.pipeline.Progress()}
	if now.Sub(m.looked) >= time.Second {
		m.looked, m.delivered, m.files, m.bytes = now, p.Delivered, 0, 0
		for _, f := range r.sources {
			if s, ok := f.source.(interface {
				Backlog() (files int, bytes int64)
			}); ok {
				files, bytes := s.Backlog()
				m.files += files
				m.bytes += bytes
			}
		}
	}
	p.FilesLeft = m.files
	p.BytesLeft = max(0, m.bytes-(p.Delivered-m.delivered)) + p.Undecoded
	if p.Delivered > m.stored && p.Undecoded == 0 && r.pipeline.Drained(ctx) && r.delivery.Settled() {
		m.stored = p.Delivered
	}
	p.Stored = p.Delivered <= m.stored
	return p
}
