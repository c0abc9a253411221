package file

import "testing"

// TestBacklogCountsDown counts down the files that were there at the start, and a second run does not count again what the
// first one read.
func TestBacklogCountsDown(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	lines := numbered("log", 40)
	for _, name := range []string{"a.jsonl", "b.jsonl", "c.jsonl"} {
		e.write(name, text(lines...))
	}
	size := int64(len(text(lines...)))
	want := func(files int, bytes int64) {
		t.Helper()
		if f, b := e.src.Backlog(); f != files || b != bytes {
			t.Errorf("%d files with %d bytes are left, want %d with %d", f, b, files, bytes)
		}
	}
	e.sink.gate = make(chan struct{})
	e.start()
	e.until("two batches", func() bool { return e.sink.atGate.Load() == 2 })
	want(3, 3*size)
	e.sink.gate <- struct{}{} // a file is one batch
	e.until("two other batches", func() bool { return e.sink.count() == len(lines) && e.sink.atGate.Load() == 2 })
	e.until("the file's end", func() bool { f, _ := e.src.Backlog(); return f == 2 })
	want(2, 2*size)
	e.stop()

	e.sink.gate = nil
	e.add("a.jsonl", text(`{"seq":40}`))
	e.start().idle()
	want(0, 0)
	e.add("b.jsonl", text(`{"seq":41}`)) // what comes later is no backlog
	e.until("the line", func() bool { return e.sink.count() == 3*len(lines)+2 })
	want(0, 0)
}
