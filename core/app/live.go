package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/redact"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/tap"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
)

// redactor makes the redactor that the configuration describes; nil when it redacts nothing.
func redactor(c *config.Config, count func(rule string, n int)) (*redact.Redactor, error) {
	s := redact.Settings{Keys: c.Redact.Keys, Builtin: c.Redact.Builtin, Count: count}
	for _, p := range c.Redact.Patterns {
		s.Patterns = append(s.Patterns, redact.Pattern{Name: p.Name, Regex: p.Regex})
	}
	if c.Redact.Mode == config.RedactHash {
		s.HashSalt = []byte(c.Redact.HashSalt.Reveal())
	}
	return redact.New(s)
}

// Redactor returns the function that removes secrets from the bytes of a message, by the configuration.
func Redactor(c *config.Config) (func([]byte) []byte, error) {
	r, err := redactor(c, nil)
	if err != nil {
		return nil, err
	}
	return r.Bytes, nil
}

// redactMessages has a feed's messages redacted, and the policy of its source applied.
func redactMessages(c *config.Source, r *redact.Redactor, salt string, m *telemetry.Metrics, sink *pipeline.Feed) error {
	p := redact.Policy{Personal: redact.Action(c.Privacy.Personal), Kinds: c.Privacy.Kinds, Words: c.Privacy.Words, Content: redact.Content(c.Privacy.Content)}
	if salt != "" {
		p.Salt = []byte(salt)
	}
	for _, x := range c.Privacy.Patterns {
		p.Patterns = append(p.Patterns, redact.Pattern{Name: x.Name, Regex: x.Regex})
	}
	f, err := r.Filter(p, countRedacted(m))
	if err != nil {
		return fmt.Errorf("privacy: %w", err)
	}
	sink.SetRedactor(f)
	return nil
}

// countRedacted counts the finds of rules.
func countRedacted(m *telemetry.Metrics) func(rule string, n int) {
	return func(rule string, n int) { m.Redacted.With(rule).Add(int64(n)) }
}

// openJournal opens the journal when the first source wants it.
func (r *runner) openJournal() error {
	if r.journal != nil {
		return nil
	}
	c := r.Config.Journal
	dir := filepath.Join(r.Config.DataDir, "journal")
	if r.backfill != nil { // the sidecar's own may be in use
		to := filepath.Join(r.dir, "journal")
		if err := journal.Copy(dir, to); err != nil {
			return err
		}
		dir, c.MinFreeDisk, c.Keep = to, 0, c.MaxAge
	}
	j, err := journal.Open(journal.Settings{
		Dir: dir, Keep: time.Duration(c.Keep), SegmentSize: int64(c.SegmentSize), MaxSize: int64(c.MaxSize), MaxAge: time.Duration(c.MaxAge),
		MinFree: int64(c.MinFreeDisk), WhenFull: journal.Policy(c.WhenFull), FsyncInterval: time.Duration(c.FsyncInterval), Logger: r.Logger,
	})
	if err != nil {
		return err
	}
	r.journal = j
	r.onClose(func() {
		if err := j.Close(); err != nil {
			r.Logger.Error("close journal", "error", err)
		}
	})
	read := func(g *telemetry.Gauges, value func(journal.Stats) int64) {
		g.With().Read(func() int64 { return value(j.Stats()) })
	}
	read(r.metrics.JournalBytes, func(s journal.Stats) int64 { return s.Bytes })
	read(r.metrics.JournalPending, func(s journal.Stats) int64 { return s.Pending })
	read(r.metrics.JournalStreams, func(s journal.Stats) int64 { return int64(s.Streams) })
	read(r.metrics.JournalFailures, func(s journal.Stats) int64 { return s.Failures })
	read(r.metrics.JournalEvicted, func(s journal.Stats) int64 { return s.Evicted })
	read(r.metrics.JournalRefused, func(s journal.Stats) int64 { return s.Refused })
	read(r.metrics.JournalCorrupt, func(s journal.Stats) int64 { return s.Corrupt })
	return nil
}

// warnUnread warns of recordings in the journal that no configured source reads.
func (r *runner) warnUnread() error {
	if r.journal == nil {
		return nil
	}
	list, err := r.journal.Sources()
	if err != nil {
		return err
	}
	for _, s := range list {
		if !r.read[s] {
			r.Logger.Warn("the journal has traffic of a source that is not configured; it stays until max_age", "source", s[0], "format", s[1])
		}
	}
	return nil
}

// addLive adds a source whose listener records its traffic in the journal.
func (r *runner) addLive(ctx context.Context, c *config.Source, section source.Live) error {
	if err := r.openJournal(); err != nil {
		return err
	}
	described, err := r.decoders(ctx, c)
	if err != nil {
		return err
	}
	var listener source.Listener
	attempts := &attempts{failing: r.metrics.Failing.With(c.Name)}
	if r.backfill == nil {
		env := r.env(c, described)
		env.Attempt = attempts.note
		if listener, err = section.NewListener(env); err != nil {
			return err
		}
	}
	if t, ok := listener.(*tap.Tap); ok {
		countTap(r.metrics, c.Name, t)
	}
	for i, format := range c.Formats() {
		options := ""
		if format == c.Format {
			options = string(c.Options)
		}
		sink, err := r.pipeline.AddFeed(c.Name, c.Tenant, format, options, true)
		if err != nil {
			return err
		}
		if err := redactMessages(c, r.redactor, r.Config.Redact.HashSalt.Reveal(), r.metrics, sink); err != nil {
			return err
		}
		if s, ok := section.(source.Remote); ok {
			sink.SetServer(s.Server())
		}
		r.read[[2]string{c.Name, format}] = true
		sink.Resume(ctx)
		reader := r.journal.Reader(c.Name, format, sink.Known())
		f := &feed{config: *c, source: reader, sink: r.liveTail.Sink(c.Name, format, sink), pipeline: sink}
		switch {
		case r.backfill != nil:
			f.sink = &wholeStreams{sink, r.Logger}
		case i == 0:
			attempts.sink = r.redactor.Sink(sink)
			f.source = &live{listener, r.redactor.Recorder(r.journal.Recorder(c.Name)), reader, attempts}
		}
		r.sources = append(r.sources, f)
	}
	return nil
}

// countTap exports the counts of a tap as metrics.
func countTap(m *telemetry.Metrics, source string, t *tap.Tap) {
	read := func(c *telemetry.Counters, of func(tap.Counts) int64) {
		c.With(source).Read(func() int64 { return of(t.Counts()) })
	}
	read(m.TapRequests, func(c tap.Counts) int64 { return c.Requests })
	read(m.TapRecorded, func(c tap.Counts) int64 { return c.Recorded })
	read(m.TapFailed, func(c tap.Counts) int64 { return c.Failed })
	read(m.TapLost, func(c tap.Counts) int64 { return c.Lost })
}

// attempts is whether the server of a source answers. An answer that will not be otherwise by itself is a problem of the source.
type attempts struct {
	failing *telemetry.Gauge
	sink    source.Sink
}

func (a *attempts) note(origin string, err error) {
	if err == nil {
		a.failing.Set(0)
		return
	}
	a.failing.Set(1)
	if answered := (*source.Answered)(nil); errors.As(err, &answered) && answered.Lasting {
		a.sink.Trouble(origin, source.ReasonAnswer, err.Error())
	}
}

// live is a listener together with the reader of its recordings.
type live struct {
	listener source.Listener
	recorder source.Recorder
	reader   source.Source
	attempts *attempts
}

// Run implements source.Source. The reader goes on until the listener has ended.
func (l *live) Run(ctx context.Context, sink source.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan error, 1)
	go func() {
		defer cancel()
		read <- l.reader.Run(ctx, sink)
	}()
	err := l.listener.Run(ctx, l.recorder)
	l.attempts.failing.Set(0)
	if err != nil {
		cancel()
	}
	if rerr := <-read; err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// Drained implements source.Source.
func (l *live) Drained() bool { return l.listener.Idle() && l.reader.Drained() }

// waitListening waits until the listeners that accept connections have their ports: a client
// may connect as soon as Ready was called.
func (r *runner) waitListening(ctx, work context.Context) {
	work, cancel := context.WithCancel(work)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	for _, f := range r.sources {
		if l, ok := f.source.(*live); ok {
			if s, ok := l.listener.(interface {
				Addr(context.Context) net.Addr
			}); ok {
				s.Addr(work)
			}
		}
	}
}
