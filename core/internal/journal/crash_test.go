package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// written makes a journal with two interleaved streams and returns the frames of each.
// The journal was not closed in an orderly way: its newest segment has no index.
func written(t *testing.T, dir string, segment int64) map[string][]string {
	t.Helper()
	s := small(t, dir)
	s.SegmentSize = segment
	j := open(t, s)
	a, b := begin(t, j, "a"), begin(t, j, "b")
	want := make(map[string][]string)
	for i := range 4 {
		for key, r := range map[string]source.Recording{"a": a, "b": b} {
			data := fmt.Sprintf("%s%d", key, i)
			want[key] = append(want[key], data)
			put(t, r, data)
			if err := r.Mark([]byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		sync_(t, a)
	}
	closed(t, b)
	sync_(t, a)
	j.mustClose(t)
	return want
}

func isPrefix(got, want []string) bool {
	return len(got) <= len(want) && slices.Equal(got, want[:len(got)])
}

// TestTornTail cuts the newest segment at every byte, as a crash may: its whole records are
// read, and new records follow them without a gap.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	want := written(t, dir, 0)
	path := files(t, dir, "seg")[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wholes := 0
	for n := range len(data) + 1 {
		tails := map[string][]byte{"cut": data[:n]}
		if n%5 == 0 {
			tails["zeros"] = append(slices.Clone(data[:n]), make([]byte, 64)...)
		}
		for name, tail := range tails {
			to := t.TempDir()
			if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), tail, 0o600); err != nil {
				t.Fatal(err)
			}
			j, k := open(t, still(t, to)), newSink(t)
			r := begin(t, j, "a")
			state := string(r.State())
			put(t, r, "after")
			drain(t, j, k)
			j.mustClose(t)
			a, b := k.content("a"), k.content("b")
			before := a[:len(a)-1]
			if a[len(a)-1] != "after" || !isPrefix(before, want["a"]) || !isPrefix(b, want["b"]) {
				t.Fatalf("%s at %d: %q %q", name, n, a, b)
			}
			// A mark follows its frame, and frames of b after the mark of a.
			if len(before) > 0 && state != before[len(before)-1] && state != prev(before) {
				t.Fatalf("%s at %d: state %q after %q", name, n, state, before)
			}
			if len(before) == len(want["a"]) {
				wholes++
			}
			if len(k.troubles) != 0 {
				t.Fatalf("%s at %d: trouble %q", name, n, k.troubles)
			}
		}
	}
	if wholes == 0 {
		t.Error("the whole file was never whole")
	}
}

func prev(s []string) string {
	if len(s) < 2 {
		return ""
	}
	return s[len(s)-2]
}

// accounted checks that a stream's frames are those that were recorded, but for gaps
// of the right size. It returns the number of gaps.
func accounted(t *testing.T, k *sink, key string, want []string) (holes int) {
	t.Helper()
	pos := int64(0)
	for _, w := range want {
		pos += int64(len(w)) + 1
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	names := k.names(key)
	if len(names) == 0 {
		return -1
	}
	s := k.streams[names[0]]
	at := make(map[int64]string)
	p := int64(0)
	for _, w := range want {
		at[p] = w
		p += int64(len(w)) + 1
	}
	for _, f := range s.frames {
		if f.Reason != "" {
			holes++
			if f.End-f.Pos != f.Dropped || len(f.Data) != 0 {
				t.Errorf("%s: hole %s", key, show(&f))
			}
			continue
		}
		if at[f.Pos] != string(f.Data) {
			t.Errorf("%s at %d: %q, want %q", key, f.Pos, f.Data, at[f.Pos])
		}
	}
	if s.next > pos {
		t.Errorf("%s: ends at %d, want at most %d", key, s.next, pos)
	}
	return holes
}

// TestDamageInASegment damages each byte of a segment that has an index: the record that the
// byte lies in is lost, and nothing else; the loss is counted to the byte.
func TestDamageInASegment(t *testing.T) {
	dir := t.TempDir()
	want := written(t, dir, 400)
	segs := files(t, dir, "seg")
	if len(segs) < 4 || len(files(t, dir, "idx")) != len(segs)-1 {
		t.Fatalf("%d segments, %d indexes", len(segs), len(files(t, dir, "idx")))
	}
	path := segs[1]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64 // of the records
	w := window{in: bytes.NewReader(data), seed: seedOf(2)}
	for r := new(record); ; ends = append(ends, w.off) {
		if ok, err := w.next(r, int64(len(data)), true); err != nil {
			t.Fatal(err)
		} else if !ok {
			break
		}
	}
	for n := range data {
		bad := slices.Clone(data)
		bad[n] ^= 0x40
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, k := open(t, still(t, copyDir(t, dir))), newSink(t)
		drain(t, j, k)
		if n%16 == 0 {
			drain(t, j, newSink(t)) // again: it is counted once
		}
		j.mustClose(t)
		i, hit := slices.BinarySearch(ends, int64(n))
		if hit {
			i++
		}
		from := int64(0)
		if i > 0 {
			from = ends[i-1]
		}
		if want := fmt.Sprintf("%d bytes at offset %d", ends[i]-from, from); j.Stats().Corrupt != ends[i]-from || !slices.Equal(k.details, []string{want}) {
			t.Errorf("byte %d: %d are damaged, %q, want %s", n, j.Stats().Corrupt, k.details, want)
		}
		lost := 0
		for _, key := range []string{"a", "b"} {
			accounted(t, k, key, want[key])
			lost += len(want[key]) - len(slices.DeleteFunc(k.content(key), func(s string) bool { return s[0] == '<' }))
			k.mu.Lock()
			if st := k.streams[k.names(key)[0]]; st.next != 12 {
				t.Errorf("byte %d: %s ends at %d", n, key, st.next)
			}
			k.mu.Unlock()
		}
		if !k.streams[k.names("b")[0]].closed {
			t.Errorf("byte %d: b is open", n)
		}
		if lost > 1 { // both streams are known, also without the record that names one

			t.Errorf("byte %d: %d frames lost", n, lost)
		}
		if t.Failed() {
			t.Fatal(k.dump())
		}
	}
}

// TestDamageWithoutAnIndex damages the newest segment, which has no index: the records behind
// the damage are found.
func TestDamageWithoutAnIndex(t *testing.T) {
	dir := t.TempDir()
	want := written(t, dir, 0)
	path := files(t, dir, "seg")[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		bad := slices.Clone(data)
		bad[n] ^= 0x40
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, k := open(t, still(t, copyDir(t, dir))), newSink(t)
		r := begin(t, j, "a")
		put(t, r, "after")
		drain(t, j, k)
		j.mustClose(t)
		a := k.content("a")
		if a[len(a)-1] != "after" {
			t.Fatalf("byte %d: %q", n, a)
		}
		accounted(t, k, "b", want["b"])
		if j.Stats().Corrupt+j.Stats().Truncated == 0 {
			t.Errorf("byte %d: no damage is counted", n)
		}
		for key, end := range map[string]int64{"a": 12 + int64(len("after")) + 1, "b": 12} {
			if len(k.content(key)) > 1 { // else the record that names it is damaged, and it is not found
				if next := k.streams[k.names(key)[0]].next; next != end {
					t.Errorf("byte %d: %s ends at %d, want %d", n, key, next, end)
				}
			}
		}
	}
}

// TestSegmentsThatAreContinued opens a journal of several segments of which some have no index: older ones get theirs, and the newest grows
// on, unless it is damaged.
func TestSegmentsThatAreContinued(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(t *testing.T, dir string, segs []string)
		sealed  int // of the segments, when the journal is open
		another int // segments more when something is recorded next
	}{
		"as it was": {func(*testing.T, string, []string) {}, -1, 0},
		"after a crash between segments": {func(t *testing.T, dir string, segs []string) {
			for _, path := range files(t, dir, "idx")[1:] {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}, -1, 0},
		"after a crash before a segment was written": {func(t *testing.T, dir string, segs []string) {
			if err := errors.Join(os.Truncate(segs[1], 0), os.Remove(files(t, dir, "idx")[1])); err != nil {
				t.Fatal(err)
			}
		}, -2, -1},
		"with an unfinished record": {func(t *testing.T, dir string, segs []string) {
			f, err := os.OpenFile(segs[len(segs)-1], os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("unfinished"); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
		}, -1, 0},
		"with a damaged one": {func(t *testing.T, dir string, segs []string) {
			data, err := os.ReadFile(segs[len(segs)-1])
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/4] ^= 0x40
			if err := os.WriteFile(segs[len(segs)-1], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}, 0, 1},
		"that is empty": {func(t *testing.T, dir string, segs []string) {
			if err := os.Truncate(segs[len(segs)-1], 0); err != nil {
				t.Fatal(err)
			}
		}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			written(t, dir, 400)
			segs := files(t, dir, "seg")
			if len(segs) < 4 {
				t.Fatalf("%d segments", len(segs))
			}
			c.damage(t, dir, segs)
			var log bytes.Buffer
			settings := still(t, dir)
			settings.Logger = slog.New(slog.NewTextHandler(&log, nil))
			j := open(t, settings)
			if cut, said := j.Stats().Truncated, strings.Contains(log.String(), "cut an unfinished end"); (cut > 0) != said {
				t.Errorf("%d bytes are cut: %s", cut, &log)
			}
			if n := len(files(t, dir, "idx")); n != len(segs)+c.sealed {
				t.Errorf("%d of %d segments are sealed", n, len(segs))
			}
			s := sweeper{settings: j.settings, mu: j.mu, retention: j.retention, segments: j.segments, streams: j.streams, writer: j.writer}
			if s.age(time.Now()); len(files(t, dir, "idx")) != len(segs)+c.sealed || j.Stats().Evicted > 0 { // none of them is old
				t.Errorf("%d segments are sealed, %+v", len(files(t, dir, "idx")), j.Stats())
			}
			r := begin(t, j, "next")
			put(t, r, "x")
			sync_(t, r)
			want := len(segs) + c.another
			now := files(t, dir, "seg")
			if len(now) != want {
				t.Errorf("%d segments are %d", len(segs), len(now))
			}
			size := int64(0)
			for _, path := range append(now, files(t, dir, "idx")...) {
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			if st := j.Stats(); st.Segments != want || st.Bytes != size || st.Syncs != 1 || st.Pending != 0 {
				t.Errorf("%d bytes in %d segments, by its own figures %+v", size, want, st)
			}
			k := newSink(t)
			drain(t, j, k)
			if got := k.content("next"); len(got) != 1 || got[0] != "x" {
				t.Errorf("what is recorded next is %q", got)
			}
		})
	}
}

// TestLostWhatWasDelivered has a disk lose bytes that it had confirmed and that the checkpoint
// is past: the frames that are recorded next are not taken for the lost ones.
func TestLostWhatWasDelivered(t *testing.T) {
	dir := t.TempDir()
	want := written(t, dir, 0)
	path := files(t, dir, "seg")[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n <= len(data); n += 7 {
		to := t.TempDir()
		copied := filepath.Join(to, filepath.Base(path))
		if err := os.WriteFile(copied, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := still(t, to)
		j, k := open(t, s), newSink(t)
		drain(t, j, k)
		j.mustClose(t)
		k.crash()
		if err := os.WriteFile(copied, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j = open(t, s)
		reader, stop := follow(t, j, k)
		r := begin(t, j, "a")
		put(t, r, "after")
		poll(t, "drained", reader.Drained)
		stop()
		j.mustClose(t)
		got := k.content("a")
		if !slices.Equal(got, append(slices.Clone(want["a"]), "after")) {
			t.Fatalf("cut at %d: %q", n, got)
		}
	}
}

// TestDamageInAnIndex damages or removes an index: it is written again.
func TestDamageInAnIndex(t *testing.T) {
	dir := t.TempDir()
	want := written(t, dir, 400)
	path := files(t, dir, "idx")[1]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) + 1 {
		bad := slices.Clone(data)
		to := copyDir(t, dir)
		copied := filepath.Join(to, filepath.Base(path))
		if n < len(data) {
			bad[n] ^= 0x40
			if err := os.WriteFile(copied, bad, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(copied); err != nil {
			t.Fatal(err)
		}
		j, k := open(t, still(t, to)), newSink(t)
		drain(t, j, k)
		j.mustClose(t)
		if !slices.Equal(k.content("a"), want["a"]) || !slices.Equal(k.content("b"), want["b"]) {
			t.Fatalf("byte %d: %s", n, k.dump())
		}
		if again, err := os.ReadFile(copied); err != nil || len(again) != len(data) {
			t.Fatalf("byte %d: the index is not made again: %v", n, err)
		}
	}
}

// TestRecordsInsideOfFrames records traffic that contains a journal: its records are not
// taken for the segment's, not even behind damage, where the journal searches for records.
func TestRecordsInsideOfFrames(t *testing.T) {
	inner := t.TempDir()
	written(t, inner, 0)
	data, err := os.ReadFile(files(t, inner, "seg")[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := small(t, dir)
	s.SegmentSize = 1 // a segment for each record
	j := open(t, s)
	r := begin(t, j, "x")
	put(t, r, "one")
	put(t, r, string(data))
	put(t, r, "three")
	j.mustClose(t)
	path := files(t, dir, "seg")[1]
	seg, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seg[len(seg)-len(data)-1] ^= 1 // in the frame's head
	if err := os.WriteFile(path, seg, 0o600); err != nil {
		t.Fatal(err)
	}
	j, k := open(t, s), newSink(t)
	drain(t, j, k)
	want := []string{"one", fmt.Sprintf("<%s %d>", ReasonCorrupt, len(data)+1), "three"}
	if got := k.content("x"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecordsOfANewerVersion reads a segment with records whose checksum is right and whose content is not understood, as those of a newer
// version: each is a gap of its stream, and of one that names a stream its length is reported.
func TestRecordsOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	g := seedOf(1)
	e := entry{number: 9, source: "s", format: "f", key: "a", origin: "/a", anchor: 7}
	data := appendEntry(nil, kindBegin, g, &e, 1)
	data, _ = appendFrame(data, g, 9, 0, frameOf("x"))
	strange := 0
	huge := func(n uint64) string { return "\x00\x00\x00" + string(binary.AppendUvarint(nil, n)) + "more than that" }
	for _, payload := range []string{"\xc8", "\x09less", "\x00\x00\x00\xc8", huge(math.MaxUint64), huge(math.MaxInt64)} {
		data = appendRecord(data, g, &record{kind: kindFrame, stream: 9, pos: 2, payload: []byte(payload)})
		strange += headSize + len(payload)
	}
	data = appendRecord(data, g, &record{kind: kindFrame, stream: 9, pos: -9, payload: []byte("\x00\x00\x00\x00")})
	strange += headSize + 4
	data, _ = appendFrame(data, g, 9, 7, frameOf("y"))
	for _, payload := range []string{"\xc8", "\x01s\x01f\x00\x00\xc8"} {
		data = appendRecord(data, g, &record{kind: kindBegin, stream: 10, payload: []byte(payload)})
		strange += headSize + len(payload)
	}
	negative := appendEntry(nil, kindBegin, g, &entry{number: 10, source: "s", format: "f", to: -1}, 1)
	data, strange = append(data, negative...), strange+len(negative)
	data = appendRecord(data, g, &record{kind: 99, stream: 9, pos: 9})
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%012d.seg", 1)), data, 0o600); err != nil {
		t.Fatal(err)
	}
	j, k := open(t, still(t, dir)), newSink(t)
	put(t, begin(t, j, "a"), "z")
	drain(t, j, k)
	if got := k.content("a"); !slices.Equal(got, []string{"x", "<journal_corrupt 5>", "y", "z"}) {
		t.Errorf("%q", got)
	}
	if n := j.Stats().Corrupt; n != int64(strange) || !slices.Equal(k.troubles, slices.Repeat([]string{ReasonCorrupt}, 9)) {
		t.Errorf("%d bytes of %d, troubles %q", n, strange, k.troubles)
	}
	if n := len(files(t, dir, "seg")); n != 2 {
		t.Errorf("%d segments: what is recorded next is beside what is not understood", n)
	}
}

// TestIndexOfANewerVersion has an index with an entry that is not understood: the segment is read instead.
func TestIndexOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	want := written(t, dir, 400)
	path := files(t, dir, "idx")[1]
	for _, strange := range []record{{kind: kindEntry, payload: []byte{0xc8}}, {kind: kindEntry, stream: 9}, {kind: 99, payload: make([]byte, 7)}} {
		index := appendRecord(nil, seedOf(2), &strange)
		index = appendRecord(index, seedOf(2), &record{kind: kindTrailer, stream: 1, pos: info(t, files(t, dir, "seg")[1]).Size()})
		if err := os.WriteFile(path, index, 0o600); err != nil {
			t.Fatal(err)
		}
		j, k := open(t, still(t, copyDir(t, dir))), newSink(t)
		drain(t, j, k)
		if !slices.Equal(k.content("a"), want["a"]) || !slices.Equal(k.content("b"), want["b"]) || len(k.troubles) > 0 {
			t.Errorf("%+v: %s %q", strange, k.dump(), k.troubles)
		}
	}
}

// TestNumbersGoOn: a stream that begins has a number of its own, also if the clock is behind that of the streams before.
func TestNumbersGoOn(t *testing.T) {
	dir := t.TempDir()
	e := entry{number: 1 << 63, source: "s", format: "f", key: "a", origin: "/a", anchor: 7}
	data := appendEntry(nil, kindBegin, seedOf(1), &e, 1)
	data, _ = appendFrame(data, seedOf(1), e.number, 0, frameOf("x"))
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%012d.seg", 1)), data, 0o600); err != nil {
		t.Fatal(err)
	}
	j, k := open(t, still(t, dir)), newSink(t)
	for _, key := range []string{"b", "c", "d"} {
		put(t, begin(t, j, key), key)
	}
	drain(t, j, k)
	for n, key := range []string{"a", "b", "c", "d"} {
		if got, want := k.names(key), fmt.Sprintf("%s~%016x", key, e.number+uint64(n)); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// TestLostIndex has an index that is damaged, of a segment that was evicted: the streams that are legible in it are counted as dropped.
func TestLostIndex(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 400)
	path := files(t, dir, "idx")[0]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 0x40 // of the trailer
	if err := errors.Join(os.WriteFile(path, data, 0o600), os.Remove(files(t, dir, "seg")[0])); err != nil {
		t.Fatal(err)
	}
	j, k := open(t, still(t, dir)), newSink(t)
	segments, bytes := len(files(t, dir, "seg")), int64(0)
	for _, name := range append(files(t, dir, "seg"), files(t, dir, "idx")...) {
		bytes += info(t, name).Size()
	}
	if st := j.Stats(); st.Segments != segments || st.Bytes != bytes {
		t.Errorf("%d segments of %d bytes, by its own figures %+v", segments, bytes, st)
	}
	drain(t, j, k)
	for _, key := range []string{"a", "b"} {
		if got := k.content(key); !strings.HasPrefix(got[0], "<journal_dropped") || k.streams[k.names(key)[0]].next != 12 {
			t.Errorf("%q", got)
		}
	}
}

// TestNextMagic finds where a record may begin behind damage, also if the bytes end in the middle of its mark.
func TestNextMagic(t *testing.T) {
	m := string(magic)
	for text, want := range map[string]int{"x": 1, "xyz": 3, m: 4, m[:1]: 1, "xx" + m: 2, m + "x" + m + m: 5, "xx" + m[:1]: 2, "xx" + m[:3]: 2, "xx" + m[1:]: 5, "x" + m[:2] + "x": 4} {
		if got := nextMagic([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func FuzzSegment(f *testing.F) {
	g := seedOf(1)
	seed := appendEntry(nil, kindBegin, g, &entry{number: 9, source: "s", format: "f", key: "a"}, 1)
	seed, _ = appendFrame(seed, g, 9, 0, frameOf("x"))
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%012d.seg", 1)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, k := open(t, still(t, dir)), newSink(t)
		drain(t, j, k)
	})
}

// TestUnreadablePart has a disk that cannot read a part of a segment, however often it is tried: the part is a gap, and the frames behind it are
// delivered.
func TestUnreadablePart(t *testing.T) {
	d := &brokenDisk{}
	s := small(t, t.TempDir())
	s.disk, s.sweep = d, time.Hour
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	const long = 50 << 10
	for i := range 4 {
		put(t, r, strings.Repeat(fmt.Sprint(i), long))
	}
	sync_(t, r)
	d.set(func() { d.readErr = syscall.EIO })
	_, stop := follow(t, j, k)
	k.until("six attempts at each of two parts, and more", func() bool {
		n := 0
		for _, reason := range k.troubles {
			if reason == "journal_unreadable" {
				n++
			}
		}
		return n == 16
	})
	d.set(func() { d.readErr = nil })
	j.mu.Lock()
	j.segments.roll() // the next one names the stream again
	j.mu.Unlock()
	put(t, r, "late")
	sync_(t, r)
	k.until("what is behind it", func() bool { n := k.names("a"); return len(n) == 1 && len(k.streams[n[0]].frames) > 1 })
	stop()
	// The record that names the stream is in the first part, so the last frame before the next one is lost too.
	if got := k.content("a"); !slices.Equal(got, []string{fmt.Sprintf("<journal_corrupt %d>", 4*(long+1)), "late"}) {
		t.Errorf("%.200q", got)
	}
	var damage []string
	for i, reason := range k.troubles {
		if reason == ReasonCorrupt {
			damage = append(damage, k.details[i])
		}
	}
	last := j.segments.list()[0].size - headSize - 4 - long
	want := []string{"65536 bytes at offset 0", "65536 bytes at offset 65536", fmt.Sprintf("%d bytes at offset 131072", last-131072)}
	if !slices.Equal(damage, want) || j.Stats().Corrupt != last {
		t.Errorf("damage %q, want %q; %d bytes are counted", damage, want, j.Stats().Corrupt)
	}
}
