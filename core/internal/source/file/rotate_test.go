package file

import (
	"os"
	"strings"
	"testing"
	"time"
)

// alike begins two files that their heads do not distinguish.
var alike = `{"header":"` + strings.Repeat("same ", 230) + `"}`

// TestRotate has a row for every way in which a file gets another name, or a name
// another content.
func TestRotate(t *testing.T) {
	runRows(t, []row{
		{"renamed below the patterns", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.rename("x.jsonl", "y.jsonl")
			e.add("y.jsonl", text(a[3:6]...))
			e.want(a[:6]...)
			e.wantStreams(1)
			e.until("the new name", func() bool { return e.sink.Known()[0].Origin == e.path("y.jsonl") })
		}},
		{"renamed to another directory", []string{"**/*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.write("sub/other.jsonl", text(b[0]))
			e.start().want(append(a[:3:3], b[0])...)
			e.rename("x.jsonl", "sub/y.jsonl")
			e.add("sub/y.jsonl", text(a[3:6]...))
			e.want(append(a[:6:6], b[0])...)
			e.wantStreams(2)
		}},
		{"renamed out of the patterns", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.rename("x.jsonl", "x.jsonl.1")
			e.add("x.jsonl.1", text(a[3:6]...))
			e.want(a[:6]...)
			e.stop()
			e.add("x.jsonl.1", text(a[6:9]...))
			e.start().want(a[:9]...)
			e.wantStreams(1)
		}},
		{"renamed out of the patterns into another directory", []string{"*.jsonl"}, func(e *env) {
			e.settings.PollInterval = 5 * time.Millisecond // nothing is watched there
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.rename("x.jsonl", "old/archived")
			e.add("old/archived", text(a[3:6]...))
			e.until("the new name", func() bool { return e.sink.Known()[0].Origin == e.path("old/archived") })
			e.want(a[:6]...)
			e.wantStreams(1)
		}},
		{"renamed while down", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.stop()
			e.add("x.jsonl", text(a[3:6]...))
			e.rename("x.jsonl", "x.jsonl.1")
			e.write("x.jsonl", text(b[:2]...))
			e.start().want(append(a[:6:6], b[:2]...)...)
			e.wantStreams(2)
		}},
		{"rotated by rename and create", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(alike, a[0]))
			e.start().want(alike, a[0])
			e.rename("x.jsonl", "x.jsonl.1")
			e.add("x.jsonl.1", text(a[1]))
			e.write("x.jsonl", text(alike, b[0]))
			e.want(alike, a[0], a[1], alike, b[0])
			e.rename("x.jsonl.1", "x.jsonl.2")
			e.rename("x.jsonl", "x.jsonl.1")
			e.write("x.jsonl", text(b[1:3]...))
			e.want(alike, a[0], a[1], alike, b[0], b[1], b[2])
			e.wantStreams(3)
		}},
		{"copied and truncated, copy elsewhere", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "old/x.jsonl.1")
			e.must(os.Truncate(e.path("x.jsonl"), 0))
			e.add("x.jsonl", text(b[:2]...))
			e.want(append(a[:3:3], b[:2]...)...)
			e.wantStreams(2)
		}},
		{"copied and truncated, beginnings alike", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(alike, a[0]))
			e.start().want(alike, a[0])
			e.copy("x.jsonl", "x.jsonl.1")
			e.must(os.Truncate(e.path("x.jsonl"), 0))
			e.add("x.jsonl", text(alike, b[0], b[1], b[2]))
			e.want(alike, a[0], alike, b[0], b[1], b[2])
			e.wantStreams(2)
		}},
		{"copied and truncated while down, beginnings alike, grown", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(alike, a[0]))
			e.start().want(alike, a[0])
			e.stop()
			e.add("x.jsonl", text(a[1]))
			e.copy("x.jsonl", "x.jsonl.1")
			e.must(os.Truncate(e.path("x.jsonl"), 0))
			e.add("x.jsonl", text(alike, b[0], b[1], b[2]))
			e.start().want(alike, a[0], a[1], alike, b[0], b[1], b[2]) // a[1] is in the copy only
			e.wantStreams(2)
		}},
		{"copied and truncated below the patterns", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "x.jsonl.1")
			e.must(os.Truncate(e.path("x.jsonl"), 0))
			e.add("x.jsonl", text(b[:2]...))
			e.want(append(a[:3:3], b[:2]...)...)
			e.stop()
			e.start().want(append(a[:3:3], b[:2]...)...)
			e.wantStreams(2)
		}},
		{"rotated unread, with the beginning of an orphan", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(alike, a[0], a[1], a[2]))
			e.start().want(alike, a[0], a[1], a[2])
			e.remove("x.jsonl")
			e.until("an orphan", func() bool { return e.orphans("x.jsonl") == 1 })
			e.write("x.jsonl.1", text(alike, b[0]))
			e.want(alike, a[0], a[1], a[2], alike, b[0])
		}},
		{"copied, written to and truncated", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "x.jsonl.1")
			e.until("the copy to be compared", func() bool { return e.isDuplicate("x.jsonl.1", len(text(a[:3]...))) })
			e.add("x.jsonl", text(a[3]))
			e.want(a[:4]...)
			e.write("x.jsonl", text(b[0]))
			e.until("the orphan to be adopted", func() bool { return e.sink.count() == 5 && e.orphans("x.jsonl") == 0 })
			e.stop()
			e.start().want(append(a[:4:4], b[0])...)
			e.wantStreams(2)
		}},
		{"replaced when it is opened again", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.stop()
			e.sink.opening = func() { e.write("x.jsonl", "longer ", text(b...)) }
			e.start().want(append(append(a[:3:3], "longer "+b[0]), b[1:]...)...)
		}},
		{"gone when it is opened", []string{"*.jsonl*"}, func(e *env) {
			e.prepare = func(s *Source) {
				s.open = func(path string) (*os.File, error) {
					if path == e.path("x.jsonl") {
						os.Remove(path)
					}
					return s.trees.open(path)
				}
			}
			e.write("x.jsonl", text(a[:3]...))
			e.write("x.jsonl.1", text(b[:3]...))
			e.start().want(b[:3]...)
		}},
		{"copy that stays a copy, and one that does not", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "x.jsonl.1")
			e.idle()
			e.add("x.jsonl", text(a[3]))
			e.want(a[:4]...)
			e.wantStreams(1)
			e.add("x.jsonl.1", text(b[0]))
			e.want(append(append(a[:4:4], a[:3]...), b[0])...)
		}},
		{"truncated in place", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.start().want(a[:5]...)
			e.write("x.jsonl", text(b[0]))
			e.want(append(a[:5:5], b[0])...)
			e.write("x.jsonl", text(b[1:20]...)) // longer than it ever was
			e.want(append(a[:5:5], b[:20]...)...)
			e.wantStreams(3)
		}},
		{"truncated in place while down, longer", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.start().want(a[:5]...)
			e.stop()
			e.write("x.jsonl", text(b[:20]...))
			e.start().want(append(a[:5:5], b[:20]...)...)
		}},
		{"torn last line is cut off and written again", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...), "to")
			e.start().want(a[:5]...)
			e.must(os.Truncate(e.path("x.jsonl"), int64(len(text(a[:5]...)))))
			e.idle()
			e.add("x.jsonl", "torn\n")
			e.want(append(a[:5:5], "torn")...)
			e.wantStreams(1)
		}},
		{"truncated under a writer that does not append", []string{"*.jsonl"}, func(e *env) {
			f, err := os.Create(e.path("x.jsonl"))
			e.must(err)
			defer f.Close()
			f.WriteString(text(a[:5]...))
			e.start().want(a[:5]...)
			e.must(f.Truncate(0))
			f.WriteString(text(a[5:7]...)) // behind a hole
			e.want(a[:7]...)
		}},
		{"deleted with data unread", []string{"*.jsonl"}, func(e *env) {
			e.sink.gate = make(chan struct{})
			e.settings.MaxRead = minRead
			lines := numbered("long", 2000)
			e.write("x.jsonl", text(lines...))
			e.start()
			e.sink.gate <- struct{}{}
			e.remove("x.jsonl")
			close(e.sink.gate)
			e.want(lines...)
		}},
		{"deleted and made again", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.start().want(a[:5]...)
			e.remove("x.jsonl")
			e.write("x.jsonl", text(b[:7]...))
			e.want(append(a[:5:5], b[:7]...)...)
		}},
		{"written to after it was deleted", []string{"*.jsonl"}, func(e *env) {
			f, err := os.Create(e.path("x.jsonl"))
			e.must(err)
			defer f.Close()
			f.WriteString(text(a[:5]...))
			e.start().want(a[:5]...)
			e.remove("x.jsonl")
			f.WriteString(text(a[5:7]...))
			e.want(a[:7]...)
		}},
		{"replaced while it is read", []string{"*.jsonl"}, func(e *env) {
			e.sink.gate = make(chan struct{})
			e.settings.MaxRead = minRead
			lines := numbered("long", 2000)
			e.write("x.jsonl", text(lines...))
			e.start()
			e.sink.gate <- struct{}{}
			e.write("tmp", text(b[:3]...))
			e.rename("tmp", "x.jsonl")
			close(e.sink.gate)
			e.want(append(lines, b[:3]...)...)
			e.wantStreams(2)
		}},
		{"rewritten with more lines", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.start().want(a[:5]...)
			e.write("tmp", text(a[:8]...))
			e.rename("tmp", "x.jsonl")
			e.want(a[:8]...)
			e.wantStreams(1)
		}},
	})
}
