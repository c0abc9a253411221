// Package export is the contract between the pipeline and its exporters.
//
// A Batch is immutable once it is sealed: it has an identity, the same batch may
// be offered again after a failure whose outcome is unknown, and an exporter
// that can refuse duplicates does so by that identity.
package export

import (
	"context"
	"errors"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// Exporter delivers batches to one destination. Export returns nil when the
// destination has accepted all of it, so that the sources may forget it.
//
// Any other outcome is an error. After a plain one the same batch is exported again;
// RetryAfter delays that, and Permanent means that this batch will never be accepted as it
// is: the pipeline then cuts it in halves to find the record that is refused. Export is
// called from one goroutine. It must not keep the batch or a record of it once it has
// returned: their memory is used again when every exporter has accepted it.
type Exporter interface {
	Export(ctx context.Context, b *Batch) error
	Close(ctx context.Context) error
}

// Preparer is an exporter whose destination is made ready before the first batch.
type Preparer interface {
	// Prepare connects and makes what rows need, as tables. Export does so itself after a Prepare that failed.
	Prepare(ctx context.Context) error
}

// Stream names a stream of a source.
type Stream struct{ Source, Key string }

// Stored is an exporter whose destination can be asked which one it is, and up to which
// position, in bytes, it has each stream. Any goroutine may ask.
type Stored interface {
	// Identity returns the name of the destination's tables, which no others have; empty when
	// there are none. newest, Unix ns, is when something was stored last.
	Identity(ctx context.Context) (id string, newest int64, err error)
	Reached(ctx context.Context) (map[Stream]int64, error)
}

// Alerter is an exporter whose destination can be asked for alerts, as of budgets. Alerts returns those that
// began or ended since the last call; their Session is empty. One goroutine calls it.
type Alerter interface {
	Alerts(ctx context.Context, now time.Time) ([]msg.Verdict, error)
}

// Superseder is an exporter in whose destination a record that is exported again with another
// time, or in another trace, lies beside its earlier version. Supersede leaves the newest
// version of each record of the formats.
type Superseder interface {
	Supersede(ctx context.Context, formats []string) error
}

// Gatherer is an exporter that can deliver several batches at once, because few large
// requests cost its destination less than many small ones. Gathered records are outside of the
// batches' memory, and at the destination when a store of Part has returned nil. Export leaves them alone.
type Gatherer interface {
	Exporter
	// Gather takes the records of a batch, and does not keep the batch. It returns false if
	// there is no room, or the batch has to be exported by itself.
	Gather(b *Batch) bool
	// Part sets the gathered records apart from those that Gather takes from now on. store brings
	// them to the destination, on a goroutine of its own; until it has returned Gather alone is
	// called. One that failed is called again, or the records are ungathered, before the next Part.
	Part() (store func(context.Context) error)
	// Ungather calls put for each gathered batch, in order, with a batch that Export takes
	// in its place, and forgets it when put returns nil.
	Ungather(put func(*Batch) error) error
	// Split returns the halves of a batch of one Rows; false: it has one row.
	Split(b *Batch) ([2]*Batch, bool)
}

// AsGatherer returns an exporter as a Gatherer, which gathers nothing where the exporter is none.
func AsGatherer(x Exporter) Gatherer {
	if g, ok := x.(Gatherer); ok {
		return g
	}
	return gathersNothing{x}
}

type gathersNothing struct{ Exporter }

func (gathersNothing) Gather(*Batch) bool { return false }
func (gathersNothing) Part() func(context.Context) error {
	return func(context.Context) error { return nil }
}
func (gathersNothing) Ungather(func(*Batch) error) error        { return nil }
func (gathersNothing) Split(*Batch) (halves [2]*Batch, ok bool) { return halves, false }

// Selector is an exporter that needs a part of each batch only. The parts are written to its
// spool before they are exported, whether it keeps up or not: batches never wait for it, and a
// destination that is down costs the disk its part.
type Selector interface {
	Exporter
	// Select returns the part of a batch that the exporter needs, which may be empty; it does
	// not keep the batch. Another goroutine than that of Export calls it.
	Select(b *Batch) *Batch
}

// Sampler is an exporter that sends a part of the conversations, and holds the records of those
// that are undecided. Any goroutine may ask.
type Sampler interface {
	Rewriter
	Sampled() Sampling
}

// Rewriter is an exporter that holds records back, in memory or in a file of its own.
type Rewriter interface {
	// Rewrite replaces each held batch that strip has changed.
	Rewrite(strip func(*Batch) bool) error
}

// Sampling counts spans: sent, not sent, and undecided now.
type Sampling struct{ Kept, Dropped, Held int64 }

// Rows are rows of one table in the encoding of an exporter's destination. Only the exporter
// that gathered them can read them.
type Rows struct {
	Table string
	Count int
	Data  []byte
	Shown string // for people, if there is one row
}

// Batch has the records of one commit batch. It owns them, and the texts of its messages.
type Batch struct {
	// ID is a hash of the records: 32 hex digits.
	ID string

	Messages    []*msg.Message
	Spans       []*msg.Span
	Verdicts    []msg.Verdict
	DeadLetters []msg.DeadLetter
	Ledger      []msg.Ledger
	Streams     []msg.Stream
	Rows        []Rows // of a batch that was gathered; it has nothing else
}

// Len is the number of records.
func (b *Batch) Len() int {
	return len(b.Messages) + len(b.Spans) + len(b.Verdicts) + len(b.DeadLetters) + len(b.Ledger) + len(b.Streams) + len(b.Rows)
}

// Rowed is the number of records, or of the rows that were made of them.
func (b *Batch) Rowed() int {
	n := b.Len() - len(b.Rows)
	for i := range b.Rows {
		n += b.Rows[i].Count
	}
	return n
}

// Halves returns the batch in two, each with an identity of its own that is the
// same whenever the batch is cut. It must have two records at least.
func (b *Batch) Halves() [2]*Batch {
	left, right := &Batch{ID: b.ID + "0"}, &Batch{ID: b.ID + "1"}
	n := b.Len() / 2
	left.Messages, right.Messages, n = cut(b.Messages, n)
	left.Spans, right.Spans, n = cut(b.Spans, n)
	left.Verdicts, right.Verdicts, n = cut(b.Verdicts, n)
	left.DeadLetters, right.DeadLetters, n = cut(b.DeadLetters, n)
	left.Ledger, right.Ledger, n = cut(b.Ledger, n)
	left.Streams, right.Streams, n = cut(b.Streams, n)
	left.Rows, right.Rows, _ = cut(b.Rows, n)
	return [2]*Batch{left, right}
}

// cut cuts a list behind n records and returns how many of them are to come yet.
func cut[T any](list []T, n int) (left, right []T, rest int) {
	k := min(n, len(list))
	return list[:k:k], list[k:], n - k
}

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error that a retry of the same batch would meet again.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether err, or one it wraps, was marked by Permanent.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}

// RetryAfter is an error with the pause that the destination asked for.
type RetryAfter struct {
	Err  error
	Wait time.Duration
}

func (r *RetryAfter) Error() string { return r.Err.Error() }
func (r *RetryAfter) Unwrap() error { return r.Err }
