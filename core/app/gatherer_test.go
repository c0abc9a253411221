package app

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// gatherer is an exporter that gathers ids.
type gatherer struct {
	sink
	gathered, stored []string
}

func (g *gatherer) Export(_ context.Context, b *export.Batch) error {
	g.stored = append(g.stored, b.ID)
	return nil
}

func (g *gatherer) Gather(b *export.Batch) bool {
	if b.ID != "large" {
		g.gathered = append(g.gathered, b.ID)
	}
	return b.ID != "large"
}

func (g *gatherer) Part() func(context.Context) error {
	return func(context.Context) error {
		g.stored, g.gathered = append(g.stored, g.gathered...), nil
		return nil
	}
}

func (g *gatherer) Ungather(put func(*export.Batch) error) error {
	return put(&export.Batch{ID: g.gathered[0]})
}

func (g *gatherer) Split(b *export.Batch) (halves [2]*export.Batch, ok bool) {
	return [2]*export.Batch{b, b}, true
}

// silent is a destination that does not answer whether it has the rows.
type silent struct{}

var errSilent = errors.New("no answer")

func (silent) Identity(context.Context) (string, int64, error)          { return "", 0, errSilent }
func (silent) Reached(context.Context) (map[export.Stream]int64, error) { return nil, errSilent }

// TestWrappedExportersGather: an exporter that is checked, and one of a backfill, gather as the exporter in them does. Gathered batches are stored behind a
// check, as exported ones are, and those of a backfill have names of their own, and each dead letter reported once.
func TestWrappedExportersGather(t *testing.T) {
	in := &gatherer{}
	v := &storedCheck{Gatherer: export.AsGatherer(in), runner: &runner{}, stored: silent{}}
	var letters []string
	x := (&backfill{name: "again", deadLetters: func(l *msg.DeadLetter) { letters = append(letters, l.Origin) }}).wrap(v).(export.Gatherer)
	batch := func(id string) *export.Batch {
		return &export.Batch{ID: id, DeadLetters: []msg.DeadLetter{{Origin: id}}, Ledger: make([]msg.Ledger, 1)}
	}
	if !x.Gather(batch("a")) {
		t.Error("it is not gathered")
	}
	store := x.Part()
	if err := store(t.Context()); !errors.Is(err, errSilent) || in.stored != nil {
		t.Errorf("stored %q before the check: %v", in.stored, err)
	}
	if err := x.Export(t.Context(), batch("b")); !errors.Is(err, errSilent) || in.stored != nil || v.exported.Load() {
		t.Errorf("stored %q before the check: %v", in.stored, err)
	}
	v.done, v.at = true, time.Now()
	if err := store(t.Context()); err != nil || !v.exported.Load() {
		t.Errorf("not stored behind the check: %v, noted: %t", err, v.exported.Load())
	}
	if err := x.Export(t.Context(), batch("b")); err != nil {
		t.Error(err)
	}
	if !slices.Equal(in.stored, []string{"a-again", "b-again"}) || !slices.Equal(letters, []string{"a", "b"}) {
		t.Errorf("stored %q, reported %q", in.stored, letters)
	}
	if _, ok := x.Split(batch("c")); !ok {
		t.Error("rows are not split")
	}
	if !x.Gather(batch("d")) {
		t.Error("it is not gathered")
	}
	if err := x.Ungather(func(b *export.Batch) error { letters = append(letters, b.ID); return errSilent }); !errors.Is(err, errSilent) || letters[len(letters)-1] != "d-again" {
		t.Errorf("taken back: %q, %v", letters, err)
	}

	plain := (&backfill{name: "again"}).wrap(&sink{}).(export.Gatherer)
	if plain.Gather(batch("e")) {
		t.Error("an exporter that gathers none has one")
	}
	if _, ok := plain.Split(batch("e")); ok {
		t.Error("it splits rows")
	}
	if err := errors.Join(plain.Part()(t.Context()), plain.Ungather(func(*export.Batch) error { return errSilent }), plain.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// sink is an exporter that takes everything.
type sink struct{}

func (*sink) Export(context.Context, *export.Batch) error { return nil }
func (*sink) Close(context.Context) error                 { return nil }
