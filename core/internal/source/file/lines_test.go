package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// plainCut is the plain form of cut, for a complete content.
func plainCut(content string, limit int, final bool) []frame.Frame {
	var out []frame.Frame
	pos, line := 0, 0
	for line < len(content) {
		for line < len(content) && content[line] == 0 {
			line++
		}
		end := strings.IndexByte(content[line:], '\n')
		whole := end >= 0
		if end = line + end; !whole {
			end = len(content)
		}
		if !whole && !final {
			break
		}
		data, next := content[line:end], end
		if whole {
			next = end + 1
		}
		line = next
		if len(data) <= limit && strings.Trim(data, " \t\r") == "" {
			continue
		}
		f := frame.Frame{Kind: frame.Line, Data: []byte(data), Pos: int64(pos), End: int64(next)}
		if n := len(data); n > limit {
			f.Data = f.Data[:min(limit, keptOfLong)]
			f.Dropped, f.Reason = int64(n-len(f.Data)), msg.ReasonTooLong
		} else if whole {
			f.Data = bytes.TrimSuffix(f.Data, []byte("\r"))
		}
		out = append(out, f)
		pos = next
	}
	return out
}

// readAll reads r with a reader that stops and goes on as often as it can: size
// grows by step, and the state between two calls is only the cursor.
func readAll(t testing.TB, l *reader, content string, step int, forward bool) []frame.Frame {
	t.Helper()
	var out []frame.Frame
	var p cursor
	for size := 0; ; size = min(size+step, len(content)) {
		last := size == len(content)
		known := int64(size)
		var r io.ReaderAt = strings.NewReader(content[:size])
		if forward {
			last, known, r = true, unknown, strings.NewReader(content)
		}
		for eof, calls := false, 0; !eof; calls++ {
			if calls > 10*len(content)+10 {
				t.Fatalf("no end of %q in steps of %d at %+v", content, step, p)
			}
			rd, err := l.readLines(r, p, known, last)
			if err != nil {
				t.Fatalf("next at %+v: %v", p, err)
			}
			if rd.to.line < p.line || rd.to.line == p.line && rd.to.scanned <= p.scanned && !rd.eof && rd.chunk == nil {
				t.Fatalf("no progress from %+v to %+v", p, rd.to)
			}
			if n := rd.to.line - p.line; rd.used != nil && string(rd.used) != content[p.line:p.line+n] && rd.to.head == nil && n == int64(len(rd.used)) {
				t.Fatalf("used at %d: %q", p.line, rd.used)
			}
			if rd.chunk != nil {
				for _, f := range rd.frames {
					f.Data = bytes.Clone(f.Data)
					f.At = 0
					out = append(out, f)
				}
			}
			rd.release()
			p, eof = rd.to, rd.eof
		}
		if last {
			return out
		}
	}
}

func testLines(t testing.TB, content string, step, maxRead, maxLine int) {
	l := newReader(maxLine, maxRead)
	want := plainCut(content, maxLine, true)
	for _, forward := range []bool{false, true} {
		got := readAll(t, l, content, max(step, 1), forward)
		same := func(a, b frame.Frame) bool {
			return a.Pos == b.Pos && a.End == b.End && a.Dropped == b.Dropped && a.Reason == b.Reason && bytes.Equal(a.Data, b.Data)
		}
		if !slices.EqualFunc(want, got, same) {
			diff := cmp.Diff(want, got)
			t.Fatalf("content %.200q, step %d, max read %d, max line %d, forward %v (-want +got):\n%s", content, step, maxRead, maxLine, forward, diff)
		}
	}
}

// TestLines cuts content that has everything at every pace.
func TestLines(t *testing.T) {
	small := "one\n\n\r\ntwo\r\n \t\nthree\r\r\n\x00\x00four\x00\n\x00\n\n  five \n" + strings.Repeat("six", 20) + "\nseven"
	for step := 1; step <= len(small); step++ {
		testLines(t, small, step, 1, 30)
	}
	large := strings.Repeat("x", minRead-1) + "\n" + strings.Repeat("y", 3*minRead) + "\n" + strings.Repeat("\n", 2*minRead) +
		strings.Repeat("\x00", 3*minRead) + "z\n" + strings.Repeat("w", 9*minRead) + "\r\n" + strings.Repeat("v\n", 3*maxFrames) + "end\n"
	for _, step := range []int{3000, minRead, minRead + 1, len(large)} {
		for _, maxRead := range []int{minRead, 3 * minRead, 1 << 20} {
			testLines(t, large, step, maxRead, 4*minRead)
			testLines(t, large, step, maxRead, 100)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add("one\n\n\r\ntwo\r\nthree", uint16(3), uint16(10))
	f.Add(strings.Repeat("\x00", 5000)+"x\n", uint16(1000), uint16(100))
	f.Add(strings.Repeat("x", 10000)+"\n\n", uint16(5000), uint16(9999))
	f.Fuzz(func(t *testing.T, content string, step, maxLine uint16) {
		testLines(t, content, max(int(step), len(content)/50), minRead, max(int(maxLine), 1))
	})
}

// TestLinesError delivers the lines before a read error.
func TestLinesError(t *testing.T) {
	l := newReader(100, minRead)
	r := readerAt{iotest.DataErrReader(io.MultiReader(strings.NewReader("one\ntwo\nthr"), iotest.ErrReader(io.ErrClosedPipe)))}
	rd, err := l.readLines(r, cursor{}, unknown, true)
	if err != io.ErrClosedPipe || len(rd.frames) != 2 || rd.to.pos != 8 {
		t.Errorf("%d frames up to %d, %v; want 2 up to 8", len(rd.frames), rd.to.pos, err)
	}
}

// readerAt reads forward and ignores the offset.
type readerAt struct{ r io.Reader }

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return io.ReadFull(r.r, p) }

// longest is the longest line of TestLongLine.
var longest int64 = 10 << 30

// holes is a file of one byte over and over, with newlines in some places.
type holes struct {
	size     int64
	newlines []int64
}

func (h holes) ReadAt(p []byte, off int64) (int, error) {
	n := int(max(0, min(int64(len(p)), h.size-off)))
	p = p[:n]
	for done := copy(p, "some of it "); done > 0 && done < n; done *= 2 {
		copy(p[done:], p[:done])
	}
	for _, at := range h.newlines {
		if at >= off && at < off+int64(n) {
			p[at-off] = '\n'
		}
	}
	if n < len(p) || off+int64(n) == h.size {
		return n, io.EOF
	}
	return n, nil
}

// TestLongLine reads lines of 64 MiB and beyond within a memory limit.
func TestLongLine(t *testing.T) {
	const limit = 64 << 20
	sizes := []int64{10, limit, 10, limit + 1, 10, 100 << 20, 10, longest} // the last without a newline
	var file holes
	var want []string
	for i, n := range sizes {
		file.size += n
		end := n
		if i < len(sizes)-1 {
			file.newlines = append(file.newlines, file.size)
			file.size++
			end++
		}
		kept, reason := n, ""
		if n > limit {
			kept, reason = keptOfLong, msg.ReasonTooLong
		}
		want = append(want, fmt.Sprint(kept, " ", n-kept, " ", reason, " ", end))
	}
	l := newReader(limit, 1<<20)
	var got []string
	var p cursor
	most := 0
	for eof := false; !eof; {
		rd, err := l.readLines(file, p, file.size, true)
		if err != nil {
			t.Fatal(err)
		}
		if rd.chunk != nil {
			most = max(most, cap(rd.buf))
			for _, f := range rd.frames {
				got = append(got, fmt.Sprint(len(f.Data), " ", f.Dropped, " ", f.Reason, " ", f.End-f.Pos))
			}
			rd.release()
		}
		p, eof = rd.to, rd.eof
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept, dropped, reason, range (-want +got):\n%s", diff)
	}
	if most > limit+(2<<20) {
		t.Errorf("a buffer of %d bytes for lines of %d", most, limit)
	}
}

// TestAllocatedAhead fills in a file that was made of NUL bytes.
func TestAllocatedAhead(t *testing.T) {
	l := newReader(1000, minRead)
	content := bytes.Repeat([]byte{0}, 3*minRead)
	var got []string
	var p cursor
	read := func() {
		t.Helper()
		for eof := false; !eof; {
			rd, err := l.readLines(bytes.NewReader(content), p, int64(len(content)), false)
			if err != nil {
				t.Fatal(err)
			}
			if rd.chunk != nil {
				for _, f := range rd.frames {
					got = append(got, string(f.Data))
				}
			}
			rd.release()
			p, eof = rd.to, rd.eof
		}
	}
	read()
	off := copy(content, "one\ntwo\n")
	read()
	off += copy(content[off:], "three\n")
	read()
	copy(content[off+2*minRead:], "behind a hole\n")
	read()
	if diff := cmp.Diff([]string{"one", "two", "three", "behind a hole"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestBigLine reads a line of 100 MiB from a real file.
func TestBigLine(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.write("x.jsonl", text("before"))
	f, err := os.OpenFile(e.path("x.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	e.must(err)
	defer f.Close()
	mib := []byte(strings.Repeat("m", 1<<20))
	e.start()
	for range 100 {
		_, err := f.Write(mib)
		e.must(err)
	}
	e.add("x.jsonl", "\nafter\n")
	e.want("before", string(mib[:keptOfLong]), "after")
	fr := e.sink.stream(0).frames[1]
	if fr.Dropped != 100<<20-keptOfLong || fr.Reason == "" || fr.End-fr.Pos != 100<<20+1 {
		t.Errorf("dropped %d for %q of %d bytes", fr.Dropped, fr.Reason, fr.End-fr.Pos)
	}
}
