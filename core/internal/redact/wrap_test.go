package redact

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/redact/seeded"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

type fakeSink struct {
	source.Sink
	got *frame.Batch
}

type fakeStream struct {
	source.Stream
	k *fakeSink
}

func (k *fakeSink) Open(context.Context, source.ID, func(int64)) (source.Stream, int64, error) {
	return fakeStream{k: k}, 7, nil
}

func (s fakeStream) Deliver(_ context.Context, b *frame.Batch) error {
	s.k.got = b
	return nil
}

func deliver(t *testing.T, r *Redactor, b *frame.Batch) *frame.Batch {
	t.Helper()
	k := &fakeSink{}
	s, pos, err := r.Sink(k).Open(t.Context(), source.ID{}, nil)
	if err != nil || pos != 7 {
		t.Fatal(pos, err)
	}
	if err := s.Deliver(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return k.got
}

func TestSinkPassesCleanBatchesOn(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	b := &frame.Batch{}
	b.Append(frame.Frame{Name: "delta", ID: "1", End: 10}, []byte(`{"a":"b"}`))
	if got := deliver(t, r, b); got != b {
		t.Error("a clean batch was replaced")
	}
}

// TestSinkReplacesBatches has a batch with secrets: only the data of its frames changes, and
// the source's buffer is released.
func TestSinkReplacesBatches(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	b, released := &frame.Batch{}, 0
	b.Release = func() { released++ }
	in := []string{`{"a":"clean"}`, `{"a":"` + aws + `"}`, ``, `{"tail of a long line ` + aws}
	want := []string{`{"a":"clean"}`, `{"a":"[redacted:aws_access_key]"}`, ``, `{"tail of a long line [redacted:aws_access_key]`}
	pos := int64(100)
	for i, data := range in {
		f := frame.Frame{Kind: frame.Line, At: int64(i), Pos: pos, End: pos + int64(len(data)) + 1}
		if i == 3 {
			f.Dropped, f.Reason = 50, "too_long"
			f.End += 50
		}
		pos = f.End
		b.Append(f, []byte(data))
	}
	b.Frames[0].Name = "POST /hook?token=" + github
	before := make([]frame.Frame, len(b.Frames))
	copy(before, b.Frames)
	got := deliver(t, r, b)
	if released != 1 {
		t.Errorf("released %d times", released)
	}
	for i, f := range got.Frames {
		if string(f.Data) != want[i] {
			t.Errorf("frame %d: %s", i, f.Data)
		}
		if _, ok := frame.Offset(got.Data, f.Data); !ok {
			t.Errorf("frame %d does not lie in its batch", i)
		}
		if string(before[i].Data) != in[i] {
			t.Errorf("frame %d: the source's buffer was written to: %s", i, before[i].Data)
		}
		f.Data, before[i].Data = nil, nil
		before[i].Clean = in[i] == want[i]
		if i == 0 {
			before[i].Name = "POST /hook?token=[redacted:github_token]"
		}
		if d := cmp.Diff(before[i], f); d != "" {
			t.Error(d)
		}
	}
}

type fakeRecorder struct {
	id     source.ID
	frames []frame.Frame
	source.Recording
}

func (f *fakeRecorder) Begin(_ context.Context, _ string, id source.ID) (source.Recording, error) {
	f.id = id
	return f, nil
}

func (f *fakeRecorder) Record(_ context.Context, g *frame.Frame) error {
	f.frames = append(f.frames, *g)
	return nil
}

func TestRecorderRedactsBeforeTheJournal(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	rec := &fakeRecorder{}
	s, err := r.Recorder(rec).Begin(t.Context(), "f", source.ID{Key: "k", Origin: "https://joe:" + "verysecret@host.example/x"})
	if err != nil {
		t.Fatal(err)
	}
	in := &frame.Frame{Kind: frame.Event, Name: "delta", ID: "9", Data: []byte("is " + openai)}
	if err := s.Record(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if string(in.Data) != "is "+openai {
		t.Error("the caller's frame was written to")
	}
	if rec.id.Key != "k" || rec.id.Origin != "https://joe:[redacted:url_password]@host.example/x" {
		t.Errorf("%+v", rec.id)
	}
	want := []frame.Frame{{Kind: frame.Event, Name: "delta", ID: "9", Data: []byte("is [redacted:api_key]")}}
	if d := cmp.Diff(want, rec.frames); d != "" {
		t.Error(d)
	}
}

// TestSinkLooksAtEachPart has a secret in one part of one frame.
func TestSinkLooksAtEachPart(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true, Keys: []string{"plain"}})
	const inBase64 = "eyJwbGFpbiI6ImhhcmJvdXIifQ=="
	const option = "--pass=abc12"
	for _, c := range []struct{ name, id, data string }{
		{"is " + aws, "", "{}"}, {"", "is " + aws, "{}"}, {"", "", inBase64}, {"", "", "is " + aws}, {option, "", "{}"}, {"", option, "{}"},
	} {
		b := &frame.Batch{}
		b.Append(frame.Frame{Name: c.name, ID: c.id, End: 10}, []byte(c.data))
		b.Append(frame.Frame{Name: c.name[:min(len(c.name), 1)], ID: c.id[:min(len(c.id), 1)], End: 20}, []byte("{}"))
		got := deliver(t, r, b).Frames
		if all := got[0].Name + got[0].ID + string(got[0].Data); got[0].End != 10 || string(got[1].Data) != "{}" || all == c.name+c.id+c.data || strings.Contains(all, aws) || strings.Contains(all, option) {
			t.Errorf("%+v: %s", c, all)
		}
	}
}

type troubleSink struct {
	source.Sink
	detail string
}

func (k *troubleSink) Trouble(_, _, detail string) { k.detail = detail }

func TestTroubleIsRedacted(t *testing.T) {
	k := &troubleSink{}
	newRedactor(t, Settings{Builtin: true}).Sink(k).Trouble("o", "r", "read "+aws)
	if k.detail != "read [redacted:aws_access_key]" {
		t.Error(k.detail)
	}
}

// TestSecretsThatAreCutOff: of a frame that was cut off, by a limit or with its connection, the end is no secret: neither the first
// part of one nor the value of a key.
func TestSecretsThatAreCutOff(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	for _, k := range seeded.Kinds() {
		at := strings.Index(k.Text, k.Secret)
		for _, missing := range []int{1, len(k.Secret) / 4} {
			part := k.Secret[:len(k.Secret)-missing]
			document := quoted(t, map[string]any{"a": "b", "content": "see " + k.Text[:at] + part})
			for where, in := range map[string]string{"text": "see " + k.Text[:at] + part, "json": strings.TrimSuffix(document, `"}`)} {
				f := frame.Frame{Kind: frame.Line, Data: []byte(in), Dropped: 1, Reason: msg.ReasonTooLong}
				b := deliver(t, r, &frame.Batch{Data: f.Data, Frames: []frame.Frame{f}})
				r.frame(&f)
				for _, out := range []string{string(f.Data), string(b.Frames[0].Data)} {
					if shown := commonPart(out, part); 2*shown > len(part) {
						t.Errorf("%s in %s: %d of %d bytes are left: %s", k.Name, where, shown, len(part), out)
					}
				}
			}
		}
	}
}

// TestCutWordIsCounted: the word with which a frame was cut off is dropped, and counted.
func TestCutWordIsCounted(t *testing.T) {
	r := newRedactor(t, Settings{Builtin: true})
	f := frame.Frame{Kind: frame.Line, Data: []byte("see the harbour"), Dropped: 5, Reason: msg.ReasonTooLong}
	r.frame(&f)
	if string(f.Data) != "see the " || f.Dropped != 5+7 || f.Clean {
		t.Errorf("%q, %d are dropped", f.Data, f.Dropped)
	}
}

// commonPart is the length of the longest part of a secret in a text.
func commonPart(text, secret string) (longest int) {
	for i := range secret {
		for i+longest < len(secret) && strings.Contains(text, secret[i:i+longest+1]) {
			longest++
		}
	}
	return longest
}
