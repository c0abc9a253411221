package conversation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestNumbersOnce holds the ranges against a set, through snapshots.
func TestNumbersOnce(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var p Numbers
		known := make(map[int64]bool)
		for range 100 {
			n := random.Int64N(60)
			if p.Add(n) == known[n] {
				t.Fatalf("seed %d: %d is new %t in %v", seed, n, known[n], p)
			}
			known[n] = true
			if n == 0 {
				p = restored(t, p)
			}
		}
		for i := 1; i < len(p); i++ {
			if p[i-1].To+1 >= p[i].From {
				t.Fatalf("seed %d: ranges that are one: %v", seed, p)
			}
		}
	}
}

func TestNumbersAreBounded(t *testing.T) {
	var p Numbers
	for n := range int64(10 * MaxRanges) {
		if !p.Add(2 * n) {
			t.Fatalf("%d is skipped", 2*n)
		}
	}
	if len(p) != MaxRanges || p.Add(2*(10*MaxRanges-1)) || !p.Add(0) {
		t.Errorf("%d ranges, from %v", len(p), p[0])
	}
}

func TestCompletePartDoesNotChange(t *testing.T) {
	var e Emitted
	id := PartID{SumOf("step-1"), "text", SumOf("otid-1")}
	compare := func(s string) Repetition { return e.Compare(id, func() Sum { return SumOf(s) }) }
	if e.Open(id); compare("tide") != New {
		t.Error("an open part was emitted")
	}
	e.Complete(id, SumOf(""))
	if compare("") != Repeated || compare("tide") != Late {
		t.Error("an empty part is not complete")
	}
	e.Complete(id, SumOf("tide"))
	for range 2 {
		if compare("tide") != Repeated || compare("ebb") != Late || len(e) != 1 {
			t.Errorf("%v", e)
		}
		e = restored(t, e)
	}
	if other := (PartID{SumOf("step-1"), "text", SumOf("otid-2")}); e.Find(other) != nil || e.Open(other).N != 1 {
		t.Errorf("%v", e)
	}
}

func TestEmittedAreBounded(t *testing.T) {
	var e Emitted
	for i := range 3 * MaxEmitted {
		if n := e.Open(PartID{1, "text", Sum(i)}).N; n != i {
			t.Fatalf("part %d has the ordinal %d", i, n)
		}
	}
	if len(e) != MaxEmitted || e.Find(PartID{1, "text", 0}) != nil {
		t.Errorf("%d parts", len(e))
	}
}

// TestReloadFoldsToTheStream decodes a conversation as a stream of pieces, as the same stream
// that is read again from a random frame on, and as the stored form, in which each part is
// whole, and in any sequence of these. All fold to the same messages.
func TestReloadFoldsToTheStream(t *testing.T) {
	type record struct{ step, name, text string }
	var stored []record
	var stream []record
	for i := range 6 {
		r := record{fmt.Sprint("step-", i/3), fmt.Sprint("block-", i), ""}
		for _, piece := range []string{"The tide ", "turns at ", fmt.Sprint(i)} {
			stream = append(stream, record{r.step, r.name, piece})
			r.text += piece
		}
		stored = append(stored, r)
	}
	type state struct {
		Numbers Numbers
		Emitted Emitted
		Open    *record
	}
	emit := func(out *decoder.Output, s *state, r record, level msg.Completeness) {
		id := PartID{SumOf(r.step), "text", SumOf(r.name)}
		if s.Emitted.Compare(id, func() Sum { return SumOf(r.text) }) != New {
			return
		}
		n := s.Emitted.Open(id).N
		m := out.Add()
		m.Kind, m.Session, m.Key, m.Complete, m.Content = msg.Assistant, "s", Ordinal(r.step+"/text", &n), level, msg.Plain(r.text)
		if level == msg.Complete {
			s.Emitted.Complete(id, SumOf(r.text))
		}
	}
	play := func(out *decoder.Output, s *state, from int) {
		for n := from; n <= len(stream); n++ {
			next := record{}
			if n < len(stream) {
				if next = stream[n]; !s.Numbers.Add(int64(n)) {
					continue
				}
			}
			if s.Open != nil && s.Open.name == next.name {
				s.Open.text += next.text
				continue
			}
			if s.Open != nil {
				emit(out, s, *s.Open, msg.Complete)
			}
			s.Open = nil
			if n < len(stream) {
				s.Open = &next
			}
		}
	}
	load := func(out *decoder.Output) {
		var s state
		for _, r := range stored {
			emit(out, &s, r, msg.Summary)
		}
	}
	var want []string
	for _, r := range stored {
		want = append(want, r.text)
	}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 7))
		var out decoder.Output
		var s state
		if seed%2 == 0 {
			load(&out)
		}
		play(&out, &s, 0)
		for range 3 {
			s = restored(t, s)
			if random.IntN(2) == 0 {
				load(&out)
			} else {
				play(&out, &s, random.IntN(len(stream)))
			}
		}
		folded := msg.Fold(out.Messages)
		slices.SortStableFunc(folded, func(a, b msg.Message) int {
			return slices.Index(want, a.Content.String()) - slices.Index(want, b.Content.String())
		})
		var got []string
		for _, m := range folded {
			if got = append(got, m.Content.String()); m.Complete != msg.Complete {
				t.Errorf("%s is %s", m.Key, m.Complete)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
	}
}

func TestRestIsWhatIsNew(t *testing.T) {
	const whole = "The tide turns at noon, né?"
	for cut := range len(whole) + 1 {
		for again := range cut + 1 {
			var w Written
			w.Add([]byte(whole[:again]))
			w.Add([]byte(whole[again:cut]))
			w = restored(t, w)
			if rest, ok := w.Rest([]byte(whole)); !ok || whole[:cut]+string(rest) != whole {
				t.Fatalf("%q after %q, %t", rest, whole[:cut], ok)
			}
			if ends := w.EndsWith([]byte("Ebb. " + whole[:cut])); ends != (cut > 0) {
				t.Fatalf("%q ends: %t", whole[:cut], ends)
			}
		}
	}
	var w Written
	w.Add([]byte("The ebb"))
	for _, other := range []string{"The", "The tide turns", ""} {
		if _, ok := w.Rest([]byte(other)); ok || w.EndsWith([]byte(other)) {
			t.Errorf("%q begins or ends with another text", other)
		}
	}
}

func restored[T any](t *testing.T, v T) (out T) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLinesOnce: a line that is there twice is read once, wherever it is repeated; of two pieces that are alike in the same
// millisecond, one after the other, each is read.
func TestLinesOnce(t *testing.T) {
	type line struct {
		what  string
		at    int64
		piece bool
	}
	a, b, ha, ho, call := line{"a", 1, false}, line{"b", 1, false}, line{"ha", 2, true}, line{"ho", 3, true}, line{"call", 3, false}
	for name, c := range map[string]struct{ in, want []line }{
		"no line twice":            {[]line{a, b, ha, ho, call}, []line{a, b, ha, ho, call}},
		"at once":                  {[]line{a, a, b, b, call, call}, []line{a, b, call}},
		"all again":                {[]line{a, ha, ho, call, a, ha, ho, call}, []line{a, ha, ho, call}},
		"a part again":             {[]line{a, ha, ho, ha, ho, call}, []line{a, ha, ho, call}},
		"alike":                    {[]line{a, ha, ha, ha, call}, []line{a, ha, ha, ha, call}},
		"alike, after another one": {[]line{a, ho, call, ho}, []line{a, ho, call}},
	} {
		var l Lines
		var got []line
		open := false
		for _, x := range c.in {
			if l.Repeat(SumOf(x.what), Time{Nanos: x.at}, x.piece, open) {
				continue
			}
			got, open = append(got, x), x.piece
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
