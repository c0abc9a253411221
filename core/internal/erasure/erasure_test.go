package erasure

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

var session = export.Session{Tenant: "default", ID: "e0a5e000-0000-4000-8000-00000000dead"}

// TestScan finds a text wherever it lies: at the seams of buffers, and in compressed blocks as the
// engine writes them, behind those of a codec for numbers.
func TestScan(t *testing.T) {
	const text = "the keeper's passphrase"
	packed := func(parts ...string) []byte {
		var out []byte
		for _, p := range parts {
			w := compress.NewWriter(compress.LevelZero, compress.ZSTD)
			if err := w.Compress([]byte(p)); err != nil {
				t.Fatal(err)
			}
			out = append(out, w.Data...)
		}
		return out
	}
	numbers := append(make([]byte, blockSum), 0x92, 20, 0, 0, 0, 20, 0, 0, 0)
	numbers = append(numbers, make([]byte, 20-9)...)
	long := strings.Repeat("tide ", 1000)
	for name, at := range map[string]struct {
		data  []byte
		times int
	}{
		"plain":           {[]byte("x" + text), 1},
		"clean":           {[]byte("nothing of it"), 0},
		"at a seam":       {[]byte(strings.Repeat("y", chunk+margin-7) + text + text), 2},
		"behind a seam":   {[]byte(strings.Repeat("y", chunk+2*margin) + text), 1},
		"compressed":      {packed(long + text + long), 1},
		"in two blocks":   {packed(long+text[:9], text[9:]+long), 1},
		"behind numbers":  {append(numbers, packed(long+text)...), 1},
		"another's path":  {[]byte("/srv/" + session.ID + ".jsonl"), 0},
		"beside its path": {[]byte("/srv/" + session.ID + ".json"), 1},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "data.bin"), at.data, 0o600); err != nil {
			t.Fatal(err)
		}
		r := &Request{Texts: []string{text}, Erasure: export.Erasure{Sessions: []export.Session{session}}}
		if err := r.Write(dir); err != nil { // it has the text
			t.Fatal(err)
		}
		s := NewScanner(r, []string{"/srv/" + session.ID + ".jsonl"})
		if err := s.Dir(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, f := range s.Report().Found {
			got += f.Times
		}
		if got != at.times {
			t.Errorf("%s: found %d times, want %d: %+v", name, got, at.times, s.Report())
		}
	}
}

// TestSet remembers sessions by their hashes alone, of their tenant alone.
func TestSet(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSet(dir)
	if err != nil || s.Has(session.Tenant, session.ID) {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Add([]export.Session{session}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, setName))
	if err != nil || bytes.Count(b, []byte("\n")) != 1 || bytes.Contains(b, []byte("dead")) && bytes.Contains(b, []byte(session.ID)) {
		t.Errorf("the file: %v\n%s", err, b)
	}
	again, err := OpenSet(dir)
	if err != nil || !again.Has(session.Tenant, session.ID) || again.Has("other", session.ID) || again.Has(session.Tenant, "other") {
		t.Errorf("after a restart: %v", err)
	}
}

// TestStrip removes the records of a session from a batch, and no other.
func TestStrip(t *testing.T) {
	both := []string{session.ID, "other"}
	var b export.Batch
	for _, id := range both {
		b.Messages = append(b.Messages, &msg.Message{Session: id, Host: msg.Host{Tenant: session.Tenant}})
		b.Spans = append(b.Spans, &msg.Span{Tenant: session.Tenant, Session: id})
		b.Verdicts = append(b.Verdicts, msg.Verdict{Tenant: session.Tenant, Session: id})
		b.DeadLetters = append(b.DeadLetters, msg.DeadLetter{Tenant: session.Tenant, Session: id})
		b.Streams = append(b.Streams, msg.Stream{Tenant: session.Tenant, Session: id})
		b.Ledger = append(b.Ledger, msg.Ledger{Tenant: session.Tenant})
	}
	r := &Request{Erasure: export.Erasure{Sessions: []export.Session{session}}}
	if !Strip(&b, r.Erased) || b.Len() != 5+2 || b.Messages[0].Session != "other" || Strip(&b, r.Erased) {
		t.Errorf("%d records are left", b.Len())
	}
}
