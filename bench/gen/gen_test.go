package gen

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSameSeedSameBytes(t *testing.T) {
	o := Options{Sessions: 3, Bytes: 600_000, Seed: 7, Broken: 0.01, Repeated: 0.01}
	a, b, other := Legion(o), Legion(o), Legion(Options{Sessions: 3, Bytes: 600_000, Seed: 8, Broken: 0.01, Repeated: 0.01})
	for n := range 3 {
		id, data, want := a.Session(n)
		id2, data2, _ := b.Session(n)
		if id != id2 || !bytes.Equal(data, data2) {
			t.Errorf("session %d is another one the second time", n)
		}
		if _, data, _ := other.Session(n); bytes.Equal(data, data2) {
			t.Errorf("session %d is the same with another seed", n)
		}
		if want.Bytes != int64(len(data)) || want.Lines != bytes.Count(data, []byte("\n")) {
			t.Errorf("session %d: %d bytes and %d lines, the account has %s", n, len(data), bytes.Count(data, []byte("\n")), want)
		}
	}
}

// The benchmark's figures are for lines of this mean size, and for texts like
// those of real transcripts.
func TestCorpusIsLikeTraffic(t *testing.T) {
	c := Legion(Options{Sessions: 40, Bytes: 40e6})
	var lines, size, escapes, wide, longest, stored, updates int
	for n := range c.Sessions() {
		_, data, a := c.Session(n)
		lines += a.Lines
		size += len(data)
		escapes += bytes.Count(data, []byte(`\`))
		for line := range bytes.Lines(data) {
			longest = max(longest, len(line))
			if bytes.Contains(line, []byte(`"_type": "ToolCallUpdate"`)) {
				updates++
			} else if bytes.Contains(line, []byte(`"_type"`)) {
				stored++
			}
			if len(bytes.TrimSpace(line)) > 0 && !json.Valid(line) {
				t.Fatalf("not JSON: %s", line)
			}
			for _, b := range line {
				if b >= utf8.RuneSelf {
					wide++
				}
			}
		}
	}
	for _, f := range []struct {
		name          string
		got, min, max int
	}{
		{"bytes of a line", size / lines, 1600, 2000},
		{"bytes between escapes", size / escapes, 40, 70},
		{"non-ASCII bytes of a thousand", wide * 1000 / size, 30, 60},
		{"longest line", longest, 50_000, 400_000},
		{"lines of generation 2, percent", stored * 100 / lines, 25, 60},
		{"lines of generation 3, percent", updates * 100 / lines, 5, 30},
	} {
		if f.got < f.min || f.got > f.max {
			t.Errorf("%s: %d, want %d to %d", f.name, f.got, f.min, f.max)
		}
	}
}

func TestWriteLeavesFilesAndOracle(t *testing.T) {
	dir := t.TempDir()
	o, err := Legion(Options{Sessions: 4, Bytes: 200_000, Seed: 3, Start: time.Unix(1772442000, 0)}).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "oracle.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read Oracle
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	var sum Account
	var size int64
	for id, a := range read.Sessions {
		sum.Add(a)
		info, err := os.Stat(filepath.Join(dir, "sessions", id, "messages.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if len(read.Sessions) != 4 || size != o.Total.Bytes || sum.ContentSum != read.Total.ContentSum || sum.Messages != o.Total.Messages {
		t.Errorf("%d sessions of %d bytes; total %s, sum %s", len(read.Sessions), size, o.Total, sum)
	}
}

// Torn lines are never JSON, whichever line they were torn from.
func TestTornLinesAreBroken(t *testing.T) {
	c := Legion(Options{Sessions: 4, Bytes: 2e6, Broken: 1})
	for n := range c.Sessions() {
		_, data, want := c.Session(n)
		broken := 0
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 && !json.Valid(line) {
				broken++
			}
		}
		if broken != want.Broken || broken == 0 {
			t.Errorf("session %d: %d lines are broken, the account has %d", n, broken, want.Broken)
		}
	}
}

func BenchmarkSession(b *testing.B) {
	c := Legion(Options{Sessions: 100, Bytes: 100e6})
	b.SetBytes(1e6)
	n := 0
	for b.Loop() {
		c.Session(n % 100)
		n++
	}
}
