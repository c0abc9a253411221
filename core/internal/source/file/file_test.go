package file

import (
	"os"
	"syscall"
	"testing"
	"time"
)

var (
	a = numbered("a", 40)
	b = numbered("b", 40)
)

// row is a history of files with its expected lines.
type row struct {
	name  string
	paths []string
	run   func(e *env)
}

// runRows runs every row with notifications alone and with the poll alone.
func runRows(t *testing.T, rows []row) {
	for _, tt := range rows {
		t.Run(tt.name+"/inotify", func(t *testing.T) { t.Parallel(); tt.run(newEnv(t, tt.paths...)) })
		t.Run(tt.name+"/poll", func(t *testing.T) { t.Parallel(); tt.run(newEnv(t, tt.paths...).poll()) })
	}
}

// TestFiles has a row for each kind of file and entry that can exist or appear.
func TestFiles(t *testing.T) {
	runRows(t, []row{
		{"globs at any depth", []string{"**/*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text("top"))
			e.write("one/two/x.jsonl", text("deep"))
			e.write("one/two/x.json", text("no"))
			e.write("one/.hidden/x.jsonl", text("hidden"))
			e.start().want("top", "deep", "hidden")
		}},
		{"globs of one level", []string{"sessions/*/messages.jsonl"}, func(e *env) {
			e.write("sessions/s1/messages.jsonl", text("s1"))
			e.write("sessions/s1/deeper/messages.jsonl", text("no"))
			e.write("sessions/messages.jsonl", text("no"))
			e.write("sessions/s2/other.jsonl", text("no"))
			e.start().want("s1")
		}},
		{"plain path and braces", []string{"plain.jsonl", "{a,b}?.[jt]sonl"}, func(e *env) {
			e.write("plain.jsonl", text("plain"))
			e.write("a1.jsonl", text("a1"))
			e.write("b2.tsonl", text("b2"))
			e.write("c1.jsonl", text("no"))
			e.start().want("plain", "a1", "b2")
		}},
		{"exclude", []string{"**/*.jsonl"}, func(e *env) {
			e.settings.Exclude = []string{"skip.jsonl", e.path("no/**")}
			e.write("x.jsonl", text("yes"))
			e.write("in/skip.jsonl", text("no"))
			e.write("no/deep/x.jsonl", text("no"))
			e.start().want("yes")
			e.write("no/y.jsonl", text("no"))
			e.write("y.jsonl", text("later"))
			e.want("yes", "later")
		}},
		{"appends", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:2]...))
			e.start().want(a[:2]...)
			for i := 2; i < 10; i++ {
				e.add("x.jsonl", text(a[i]))
				e.want(a[:i+1]...)
			}
			e.wantStreams(1)
		}},
		{"resume", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.start().want(a[:5]...)
			e.stop()
			e.add("x.jsonl", text(a[5:9]...))
			e.start().want(a[:9]...)
			e.wantStreams(1)
		}},
		{"partial last line", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", "be", "gin")
			e.start().idle()
			e.add("x.jsonl", "ning\nmid")
			e.want("beginning")
			e.add("x.jsonl", "dl")
			e.idle()
			e.want("beginning")
			e.add("x.jsonl", "e\n")
			e.want("beginning", "middle")
			e.add("x.jsonl", "end")
			e.idle()
			e.want("beginning", "middle")
			e.stop()
			e.add("x.jsonl", "ing\n")
			e.start().want("beginning", "middle", "ending")
		}},
		{"partial last line of a file that is deleted", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[0]), "rest")
			e.write("y.jsonl", "only rest")
			e.start().want(a[0])
			e.remove("x.jsonl")
			e.remove("y.jsonl")
			e.want(a[0], "rest", "only rest")
		}},
		{"partial last line at the end of the run", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(a[0]), "rest")
			e.write("y.jsonl", "only rest")
			e.start().want(a[0])
			e.src.Finish()
			e.want(a[0], "rest", "only rest")
			e.idle()
		}},
		{"file that appears later", []string{"**/*.jsonl"}, func(e *env) {
			e.start().idle()
			e.write("x.jsonl", text("x"))
			e.want("x")
			e.write("new/dir/y.jsonl", text("y"))
			e.want("x", "y")
			e.must(os.MkdirAll(e.path("other/place"), 0o755))
			e.write("other/place/z.jsonl", text("z"))
			e.want("x", "y", "z")
		}},
		{"root that appears later", []string{"not/there/yet/*.jsonl"}, func(e *env) {
			e.start().idle()
			e.write("not/related.jsonl", text("no"))
			e.write("not/there/yet/x.jsonl", text("x"))
			e.want("x")
			e.add("not/there/yet/x.jsonl", text("y"))
			e.want("x", "y")
		}},
		{"directory that moves in", []string{"**/*.jsonl"}, func(e *env) {
			other := e.TempDir()
			e.must(os.WriteFile(other+"/x.jsonl", []byte("x\n"), 0o644))
			e.start().idle()
			e.must(os.Rename(other, e.path("in")))
			e.want("x")
			e.add("in/x.jsonl", text("y"))
			e.want("x", "y")
		}},
		{"directory that is renamed", []string{"**/*.jsonl"}, func(e *env) {
			e.write("one/deep/x.jsonl", text("x"))
			e.start().want("x")
			e.rename("one", "two")
			e.until("the new name", func() bool { return e.sink.Known()[0].Origin == e.path("two/deep/x.jsonl") })
			e.add("two/deep/x.jsonl", text("y"))
			e.want("x", "y")
			e.write("two/deep/y.jsonl", text("z"))
			e.want("x", "y", "z")
			e.wantStreams(2)
		}},
		{"symbolic link to a file", []string{"logs/*.jsonl"}, func(e *env) {
			e.settings.FollowSymlinks = true
			e.write("data/real", text("x"))
			e.must(os.MkdirAll(e.path("logs"), 0o755))
			e.must(os.Symlink(e.path("data/real"), e.path("logs/x.jsonl")))
			e.must(os.Symlink(e.path("data/missing"), e.path("logs/y.jsonl")))
			e.start().want("x")
			e.add("data/real", text("y"))
			e.want("x", "y")
		}},
		{"symbolic link to a directory, and loops", []string{"**/*.jsonl"}, func(e *env) {
			e.settings.FollowSymlinks = true
			other := e.TempDir()
			e.must(os.WriteFile(other+"/x.jsonl", []byte("x\n"), 0o644))
			e.must(os.Symlink(other, e.path("linked")))
			e.must(os.Symlink(e.dir, other+"/back"))
			e.must(os.Symlink(".", e.path("self")))
			e.must(os.Symlink("knot", e.path("knot")))
			e.write("y.jsonl", text("y"))
			e.start().want("x", "y")
			e.add("linked/x.jsonl", text("z"))
			e.want("x", "y", "z")
			e.wantStreams(2)
		}},
		{"one file under two names and two patterns", []string{"*.jsonl", "a/*.jsonl", "**/h*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text("x"))
			e.must(os.Mkdir(e.path("a"), 0o755))
			e.must(os.Link(e.path("x.jsonl"), e.path("a/hard.jsonl")))
			e.start().want("x")
			e.add("x.jsonl", text("y"))
			e.want("x", "y")
			e.remove("x.jsonl")
			e.add("a/hard.jsonl", text("z"))
			e.want("x", "y", "z")
			e.wantStreams(1)
		}},
		{"line endings and blank lines", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", "\n\r\none\r\n \t \ntwo\u2028still two\u2029\x85\n\n\n")
			e.start().want("one", "two\u2028still two\u2029\x85")
			e.add("x.jsonl", "\nthree\rstill three\n")
			e.want("one", "two\u2028still two\u2029\x85", "three\rstill three")
		}},
		{"byte order mark", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", "\xef\xbb\xbf"+text("one", "\xef\xbb\xbftwo"))
			e.start().want("one", "\xef\xbb\xbftwo")
		}},
		{"NUL bytes", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", "one\x00more\n\x00\x00\x00two\n\x00\x00")
			e.start().want("one\x00more", "two")
		}},
		{"not a regular file", []string{"*.jsonl"}, func(e *env) {
			e.must(syscall.Mkfifo(e.path("pipe.jsonl"), 0o644))
			e.must(os.Mkdir(e.path("dir.jsonl"), 0o755))
			e.must(os.Symlink("/dev/null", e.path("device.jsonl")))
			e.write("x.jsonl", text("x"))
			e.start().want("x")
			e.wantTrouble(ReasonDirectory, ReasonLink, ReasonNotRegular)
		}},
		{"metadata files", []string{"**/*.jsonl"}, func(e *env) {
			e.settings.MetadataFiles = []string{"*.meta.json", "notes/*.txt"}
			e.write("s/x.jsonl", text("x"))
			e.write("s/x.meta.json", "{\n}\n")
			e.write("s/notes/n.txt", "note")
			e.write("alone/y.meta.json", "no transcript beside it")
			e.start().want("x", "{\n}\n", "note")
			e.write("s/x.meta.json", "changed")
			e.want("x", "{\n}\n", "note", "changed")
			e.write("alone/y.jsonl", text("y"))
			e.want("x", "{\n}\n", "note", "changed", "y", "no transcript beside it")
			e.write("s/z.meta.json", "z")
			all := []string{"x", "{\n}\n", "note", "changed", "y", "no transcript beside it", "z"}
			e.want(all...)
			e.wantStreams(6)
			e.stop()
			e.start().idle()
			e.want(all...)
			e.stop()
			e.write("s/z.meta.json", "zz")
			e.start().want(append(all, "zz")...)
			e.wantStreams(6)
		}},
		{"documents", []string{"**/*"}, func(e *env) {
			e.settings.Documents = []string{"*.json"}
			e.settings.MetadataFiles = []string{"session-*.json"}
			e.settings.MaxLine = 100
			e.write("s/x.json", "{\n  \"n\": 1\n}\n")
			e.write("s/session-1.json", "[]")
			e.write("s/x.jsonl", text("x"))
			e.start().want("{\n  \"n\": 1\n}\n", "[]", "x")
			e.write("s/x.json", `{"n": `) // half of it
			e.write("s/new.json", "[\n", "1]")
			e.until("the other document", func() bool { return e.sink.count() == 4 })
			e.add("s/x.json", "2}")
			all := []string{"{\n  \"n\": 1\n}\n", "[]", "x", "[\n1]", `{"n": 2}`}
			e.want(all...)
			e.write("s/x.tmp", `{"n": 3}`)
			all = append(all, `{"n": 3}`) // as a line: no pattern of a document has its name
			e.add("s/x.tmp", "\n")
			e.want(all...)
			e.rename("s/x.tmp", "s/x.json")
			all = append(all, `{"n": 3}`+"\n")
			e.want(all...)
			e.stop()
			e.start().idle()
			e.want(all...)
			e.stop()
			e.write("s/x.json", `{"n": "`+string(make([]byte, 300))+`"}`)
			e.start()
			e.until("the head of the long document", func() bool { return e.sink.count() == len(all)+1 })
		}},
		{"a document under the name of lines", []string{"**/*.jsonl"}, func(e *env) {
			e.settings.Documents = []string{"session-*.json"}
			whole := "\xef\xbb\xbf{\r\n  \"n\": 1\r\n}\r\n"
			e.write("s/x.jsonl", whole)
			e.write("s/y.jsonl", "[\n1]")
			e.write("s/z.jsonl", "{ }\n{\n") // its first line is more
			e.start().want(whole[3:], "[\n1]", "{ }", "{")
			e.write("s/y.jsonl", "[\n1,") // half of it
			e.write("s/new.jsonl", "{")   // no line yet
			e.add("s/new.jsonl", "\n}")
			all := []string{whole[3:], "[\n1]", "{ }", "{", "{\n}", "[\n1,2]"}
			e.add("s/y.jsonl", "2]")
			e.want(all...)
			e.rename("s/y.jsonl", "s/w.jsonl")
			e.idle()
			e.want(all...)
			e.stop()
			e.start().idle()
			e.want(all...)
			e.add("s/z.jsonl", "}\n")
			e.want(append(all, "}")...)
			e.wantTrouble()
		}},
		{"lines that begin like a document", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", "{\n}\n")
			e.start().want("{", "}")
			e.stop()
			e.settings.Documents = []string{"*.json"} // the next build reads it as a document
			e.start().want("{", "}", "{\n}\n")
			e.stop()
			e.start().idle()
			e.want("{", "}", "{\n}\n")
		}},
		{"a metadata file is rewound instead of closed", []string{"*.jsonl"}, func(e *env) {
			e.settings.MetadataFiles = []string{"*.meta.json"}
			e.sink.rewinds = 2
			e.write("x.jsonl", text("x"))
			e.write("x.meta.json", "meta")
			e.start().want("x", "meta", "meta", "meta")
			e.until("the metadata stream to be closed", func() bool { return e.sink.stream(1).closes == 1 })
			e.wantTrouble()
		}},
		{"documents are asked for again", []string{"*"}, func(e *env) {
			e.settings.Documents = []string{"*.json"}
			e.write("x.json", "[1]")
			e.write("y.json", "[2]")
			e.start().want("[1]", "[2]")
			closed := func(n int) {
				e.Helper()
				e.until("closed streams", func() bool { return e.sink.stream(0).closes+e.sink.stream(1).closes == n })
			}
			again := func() {
				e.sink.mu.Lock()
				e.sink.rewinds = 1 // what was decoded is decoded again when the stream is open
				key := e.sink.order[0]
				e.sink.mu.Unlock()
				e.src.Again(func(k string) bool { return k == key })
			}
			closed(2)
			first := string(e.sink.stream(0).frames[0].Data)
			again()
			e.want("[1]", "[2]", first)
			closed(3)
			e.stop()
			e.start().idle() // and when it was delivered by an earlier run
			again()
			e.want("[1]", "[2]", first, first)
			closed(4)
			e.wantTrouble()
		}},
		{"start at the end", []string{"**/*.jsonl"}, func(e *env) {
			e.settings.StartAt = End
			e.write("x.jsonl", text(a[:3]...), "par")
			e.start().idle()
			e.want()
			e.add("x.jsonl", "tial\n")
			e.write("y.jsonl", text(b[:2]...))
			e.want("partial", b[0], b[1])
			if p := e.sink.stream(0).frames[0].Pos; p != 0 {
				e.Errorf("the first frame is at %d, want 0", p)
			}
			e.stop()
			e.add("x.jsonl", text(a[3]))
			e.write("z.jsonl", text(b[2]))
			e.start().want("partial", b[0], b[1], a[3], b[2])
		}},
		{"older than wanted", []string{"*.jsonl"}, func(e *env) {
			e.settings.IgnoreOlderThan = time.Hour
			old := time.Now().Add(-2 * time.Hour)
			e.write("old.jsonl", text(a[:2]...))
			e.must(os.Chtimes(e.path("old.jsonl"), old, old))
			e.write("new.jsonl", text(b[:2]...))
			e.start().want(b[:2]...)
			e.add("old.jsonl", text(a[2])) // it is taken up again, so all of it matters
			e.want(append(a[:3:3], b[:2]...)...)
			e.stop()
			e.must(os.Chtimes(e.path("old.jsonl"), old, old))
			e.add("new.jsonl", text(b[2]))
			e.start().want(append(a[:3:3], b[:3]...)...)
		}},
	})
}
