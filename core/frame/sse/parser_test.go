package sse

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// show writes frames so that two parses can be compared as text.
func show(frames []frame.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%d-%d %q %q %q", f.Pos, f.End, f.Name, f.ID, f.Data)
		if f.Reason != "" {
			fmt.Fprintf(&b, " %s %d", f.Reason, f.Dropped)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// parse feeds the stream in chunks that end at those offsets.
func parse(p *Parser, stream string, cuts ...int) []frame.Frame {
	var b frame.Batch
	from := 0
	for _, to := range append(cuts, len(stream)) {
		p.Feed(&b, []byte(stream[from:to]), 1)
		from = to
	}
	return b.Frames
}

func TestStandard(t *testing.T) {
	for name, c := range map[string]struct{ stream, want string }{
		"nothing":                   {"", ""},
		"one event":                 {"data: a\n\n", `0-9 "" "" "a"`},
		"no space":                  {"data:a\n\n", `0-8 "" "" "a"`},
		"one of two spaces":         {"data:  a\n\n", `0-10 "" "" " a"`},
		"tab is no space":           {"data:\ta\n\n", `0-9 "" "" "\ta"`},
		"CR":                        {"data: a\rdata: b\r\r", `0-17 "" "" "a\nb"`},
		"CRLF":                      {"data: a\r\ndata: b\r\n\r\n", `0-19 "" "" "a\nb"`},
		"mixed ends":                {"data: a\rdata: b\ndata: c\r\n\n", `0-26 "" "" "a\nb\nc"`},
		"CR then LF is one end":     {"data: a\r\n\r\ndata: b\n\n", "0-10 \"\" \"\" \"a\"\n10-20 \"\" \"\" \"b\""},
		"LF then CR are two":        {"data: a\n\rdata: b\n\n", "0-9 \"\" \"\" \"a\"\n9-18 \"\" \"\" \"b\""},
		"empty data":                {"data\n\ndata\ndata\n\ndata:", "0-6 \"\" \"\" \"\"\n6-17 \"\" \"\" \"\\n\""},
		"name and id":               {"event: ping\nid: 7\ndata: x\n\n", `0-27 "ping" "7" "x"`},
		"last name counts":          {"event: a\nevent: b\ndata: x\n\n", `0-27 "b" "" "x"`},
		"name does not stick":       {"event: a\ndata: x\n\ndata: y\n\n", "0-18 \"a\" \"\" \"x\"\n18-27 \"\" \"\" \"y\""},
		"name without data":         {"event: a\n\ndata: y\n\n", `0-19 "" "" "y"`},
		"id with NUL":               {"id: 1\x002\ndata: x\n\n", `0-17 "" "" "x"`},
		"comments":                  {": hi\n:\ndata: x\n:\n\n: bye\n", `0-18 "" "" "x"`},
		"comment with colon":        {":data: no\ndata: x\n\n", `0-19 "" "" "x"`},
		"unknown field":             {"dat: 1\ndatum: 2\nDATA: 3\n data: 4\ndata: x\n\n", `0-42 "" "" "x"`},
		"long unknown field":        {strings.Repeat("z", 9000) + ": 1\ndata: x\n\n", `0-9013 "" "" "x"`},
		"mark":                      {"\xEF\xBB\xBFdata: x\n\n", `0-12 "" "" "x"`},
		"two marks":                 {"\xEF\xBB\xBF\xEF\xBB\xBFdata: x\n\ndata: y\n\n", `0-24 "" "" "y"`},
		"half a mark":               {"\xEF\xBBdata: x\n\ndata: y\n\n", `0-20 "" "" "y"`},
		"mark in the middle":        {"data: x\n\n\xEF\xBB\xBFdata: y\n\n", `0-9 "" "" "x"`},
		"without a blank line":      {"data: x\n", ""},
		"blank lines first":         {"\n\n\r\n\ndata: x\n\n", `0-14 "" "" "x"`},
		"colon in data":             {"data: {\"a\":1}\n\n", `0-15 "" "" "{\"a\":1}"`},
		"NUL and bad UTF-8 stay":    {"data: \x00\xff\n\n", `0-10 "" "" "\x00\xff"`},
		"bad UTF-8 in a name":       {"event: a\xff\ndata: x\n\n", `0-19 "a` + "\uFFFD" + `" "" "x"`},
		"U+2028 ends no line":       {"data: a\u2028b\n\n", `0-13 "" "" "a\u2028b"`},
		"field that is only a name": {"event\ndata: x\n\n", `0-15 "" "" "x"`},
	} {
		if got := strings.TrimSuffix(show(parse(New(0, 0), c.stream)), "\n"); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestFinishGivesWhatIsOpen(t *testing.T) {
	for stream, want := range map[string]string{
		"data: x":           `0-7 "" "" "x"`,
		"data: x\n":         `0-8 "" "" "x"`,
		"data: x\ndata":     `0-12 "" "" "x\n"`,
		"data: x\nevent: e": `0-16 "e" "" "x"`,
		"event: e\n":        "",
		": hi":              "",
		"\xEF\xBB":          "",
		"data: x\n\n":       `0-9 "" "" "x"`,
	} {
		p := New(0, 0)
		var b frame.Batch
		p.Feed(&b, []byte(stream), 1)
		p.Finish(&b, 2)
		if got := strings.TrimSuffix(show(b.Frames), "\n"); got != want {
			t.Errorf("%q: got %s, want %s", stream, got, want)
		}
		if want == "" && p.Pending() != int64(len(stream)) {
			t.Errorf("%q: %d bytes pending", stream, p.Pending())
		}
	}
}

func TestClientState(t *testing.T) {
	p := New(0, 0)
	parse(p, "retry: 2500\nid: a\ndata: 1\n\nretry: soon\nretry: -1\nretry:\nid: b\n\n: c\nid: no\x00\ndata: 2\n\nid: open\n")
	if p.LastEventID() != "b" || p.Retry() != 2500*time.Millisecond {
		t.Errorf("last id %q, retry %s", p.LastEventID(), p.Retry())
	}
	if got, want := p.Counts(), (Counts{Events: 2, Comments: 1, Retries: 1, Empty: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	parse(p, "\nid:\n\n")
	if p.LastEventID() != "" {
		t.Errorf("an empty id does not reset: %q", p.LastEventID())
	}
}

func TestTooLong(t *testing.T) {
	got := show(parse(New(0, 8), "data: 12345678\n\ndata: 1234\ndata: 12345\n\ndata: ok\n\nevent: "+strings.Repeat("n", maxValue+3)+"\ndata: x\n\n"))
	want := "0-16 \"\" \"\" \"12345678\"\n" +
		"16-40 \"\" \"\" \"1234\\n123\" too_long 2\n" +
		"40-50 \"\" \"\" \"ok\"\n" +
		fmt.Sprintf("50-4166 %q \"\" \"x\" too_long 3\n", strings.Repeat("n", maxValue))
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// streams are fixtures for everything that must not depend on the cut.
var streams = []string{
	"\xEF\xBB\xBF: welcome\r\nretry: 10\r\n\r\nevent: message_start\r\nid: 1\r\ndata: {\"type\":\"message_start\",\r\ndata: \"n\":1}\r\n\r\n",
	"data: grüße 😀\rdata:\r\rdata\r\r\ndata: y\n\n\n:\n\ndata: z",
	"id: 5\nevent: delta\ndata: {\"t\":\"a\\n\"}\n\nid\nevent\ndata\n\nid: x\x00\nretry: 5\nretry\n\ndata:  two\n\n",
	"\xEF\xBBevent: e\n\n" + "data: " + strings.Repeat("long ", 40) + "\n\ndata: after\n\n",
	"\r\n\r\n\r\rdata:1\r\n\r\ndata:2\r\r\ndata:3\n\r\n",
}

func TestEveryCutGivesTheSame(t *testing.T) {
	for n, stream := range streams {
		for _, limit := range []int{0, 20} {
			p := New(0, limit)
			want, counts := show(parse(p, stream)), p.Counts()
			for i := range len(stream) + 1 {
				p := New(0, limit)
				if got := show(parse(p, stream, i)); got != want || p.Counts() != counts {
					t.Fatalf("stream %d limit %d cut at %d: got\n%s\nwant\n%s", n, limit, i, got, want)
				}
			}
			bytewise := make([]int, len(stream))
			for i := range bytewise {
				bytewise[i] = i
			}
			if got := show(parse(New(0, limit), stream, bytewise...)); got != want {
				t.Fatalf("stream %d byte by byte: got\n%s\nwant\n%s", n, got, want)
			}
		}
	}
}

// A reader that resumes at the end of any frame goes on as if it had never
// stopped.
func TestResumeAtEveryEnd(t *testing.T) {
	for n, stream := range streams {
		all := parse(New(0, 0), stream)
		for i, f := range all {
			rest := parse(New(f.End, 0), stream[f.End:])
			if got, want := show(rest), show(all[i+1:]); got != want {
				t.Errorf("stream %d resumed at %d: got\n%s\nwant\n%s", n, f.End, got, want)
			}
		}
	}
}

// Neither a comment nor a line nor an event without end may take memory.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 1 << 10
	chunk := []byte(strings.Repeat("x", 64<<10))
	for name, head := range map[string]string{
		"comment": ": ", "data": "data: ", "event": "event: ", "id": "id: ", "retry": "retry: ", "field": "", "other": "other: ",
	} {
		p := New(0, limit)
		var b frame.Batch
		p.Feed(&b, []byte(head), 1)
		for range 64 {
			p.Feed(&b, chunk, 1)
		}
		if held := cap(p.data) + cap(p.value) + cap(p.fname); held > 4*maxValue || len(b.Frames) != 0 {
			t.Errorf("%s: %d bytes held", name, held)
		}
		p.Feed(&b, []byte("\ndata: y\n\n"), 1)
		if len(b.Frames) != 1 || b.Frames[0].End != int64(len(head)+64*len(chunk)+10) {
			t.Errorf("%s: %s", name, show(b.Frames))
		}
	}
	p := New(0, 0)
	var b frame.Batch
	p.Feed(&b, []byte("data: "+strings.Repeat("y", 4<<20)+"\n\n"), 1)
	if len(b.Frames) != 1 || cap(p.data) > keep {
		t.Errorf("%d bytes kept after a long event", cap(p.data))
	}
}

// check holds a parse in pieces against the whole and the ranges against the
// stream.
func check(t *testing.T, stream string, limit int, cuts ...int) {
	t.Helper()
	p := New(0, limit)
	whole := parse(p, stream)
	at := int64(0)
	for _, f := range whole {
		if f.Pos != at || f.End <= f.Pos {
			t.Fatalf("%q: range %d-%d after %d", stream, f.Pos, f.End, at)
		}
		at = f.End
		if int64(len(f.Data)) > f.End-f.Pos || len(f.Data) > limit || (f.Dropped > 0) != (f.Reason != "") {
			t.Fatalf("%q: %d bytes of data, %d dropped, in %d-%d", stream, len(f.Data), f.Dropped, f.Pos, f.End)
		}
	}
	if at+p.Pending() != int64(len(stream)) {
		t.Fatalf("%q: frames end at %d, %d pending, of %d", stream, at, p.Pending(), len(stream))
	}
	q := New(0, limit)
	if got, want := show(parse(q, stream, cuts...)), show(whole); got != want || q.Pending() != p.Pending() {
		t.Fatalf("%q cut at %v: got\n%s\nwant\n%s", stream, cuts, got, want)
	}
}

func FuzzSSE(f *testing.F) {
	for _, s := range streams {
		f.Add(s, uint64(1), uint16(30))
	}
	f.Fuzz(func(t *testing.T, stream string, seed uint64, limit uint16) {
		check(t, stream, int(limit)+1, randomCuts(stream, seed)...)
	})
}

func randomCuts(stream string, seed uint64) []int {
	r := rand.New(rand.NewPCG(seed, 0))
	var cuts []int
	for i := 0; i < len(stream); i += r.IntN(1 + r.IntN(len(stream)+1)) {
		cuts = append(cuts, i)
		if len(cuts) > 100 {
			break
		}
	}
	return cuts
}

// Random pieces of the grammar reach states that random bytes rarely do.
func TestRandomStreams(t *testing.T) {
	pieces := []string{"\r", "\n", "\r\n", "\n\n", "data: a", "data", "data:", ":", " ", "event: e", "id: 1", "id", "retry: 5", "\xEF\xBB\xBF", "x", "\x00", "ü", "other: 1"}
	r := rand.New(rand.NewPCG(7, 7))
	for seed := range uint64(3000) {
		var b strings.Builder
		for range r.IntN(25) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		check(t, b.String(), 1+r.IntN(12), randomCuts(b.String(), seed)...)
	}
}

func BenchmarkFeed(b *testing.B) {
	for name, event := range map[string]string{
		"deltas": "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" the\"}}\n\n",
		"long":   "data: " + strings.Repeat("0123456789abcdef", 1024) + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			chunk := []byte(strings.Repeat(event, 256<<10/len(event)+1))
			p := New(0, 0)
			var out frame.Batch
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				p.Feed(&out, chunk, 1)
			}
			b.ReportMetric(float64(len(out.Frames)), "records/op")
		})
	}
}
