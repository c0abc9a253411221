package file

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestArchives(t *testing.T) {
	// old sets the time of a file so that it counts as complete.
	old := func(e *env, name string) {
		at := time.Now().Add(-time.Minute)
		e.must(os.Chtimes(e.path(name), at, at))
	}
	big := numbered("big", 3000)
	runRows(t, []row{
		{"archive without an original", []string{"*.gz"}, func(e *env) {
			e.write("x.jsonl.gz", string(packed([]byte(text(big...)+"no newline"))))
			old(e, "x.jsonl.gz")
			e.start().want(append(big[:len(big):len(big)], "no newline")...)
			e.stop()
			e.start().idle()
			e.want(append(big[:len(big):len(big)], "no newline")...)
			if st := e.sink.stream(0); st.opens != 1 || st.closes != 1 {
				e.Errorf("opened %d times and closed %d times, want once each", st.opens, st.closes)
			}
		}},
		{"rewound instead of closed", []string{"*.gz"}, func(e *env) {
			e.sink.rewinds = 2
			e.write("x.jsonl.gz", string(packed([]byte(text(a[:5]...)))))
			old(e, "x.jsonl.gz")
			e.start().want(append(append(a[:5:5], a[:5]...), a[:5]...)...)
			e.until("the stream to be closed", func() bool { return e.sink.stream(0).closes == 1 })
			e.wantTrouble()
		}},
		{"archive of a read file", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.start().want(a[:5]...)
			e.rename("x.jsonl", "x.jsonl.1")
			e.gzip("x.jsonl.1", "x.jsonl.1.gz")
			e.write("x.jsonl", text(b[0]))
			e.want(append(a[:5:5], b[0])...)
			e.stop()
			e.start().idle()
			e.want(append(a[:5:5], b[0])...)
			e.wantStreams(2)
		}},
		{"archive of a read file whose inode another archive has", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.stop()
			e.write("x.jsonl.gz", string(packed([]byte(text(a[:5]...)))))
			e.rename("x.jsonl", "y.jsonl.gz") // the next file that is made has the inode, as on ext4
			e.write("y.jsonl.gz", string(packed([]byte(text(b[:2]...)))))
			old(e, "x.jsonl.gz")
			old(e, "y.jsonl.gz")
			e.start().want(append(a[:5:5], b[:2]...)...)
			e.wantStreams(2)
		}},
		{"archive of a partly read file", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(big[:2000]...))
			e.start().want(big[:2000]...)
			e.stop()
			e.add("x.jsonl", text(big[2000:]...))
			e.rename("x.jsonl", "x.jsonl.1")
			e.gzip("x.jsonl.1", "x.jsonl.2.gz")
			e.start().want(big...)
			e.stop()
			e.rename("x.jsonl.2.gz", "x.jsonl.3.gz")
			e.start().idle()
			e.want(big...)
			e.wantStreams(1)
		}},
		{"archive of a partly read file, covered by no pattern", []string{"*.jsonl"}, func(e *env) {
			e.write("x.jsonl", text(big[:2000]...))
			e.write("y.jsonl", text(b[0]))
			e.start().want(append(big[:2000:2000], b[0])...)
			e.stop()
			e.add("x.jsonl", text(big[2000:]...))
			e.gzip("x.jsonl", "x.jsonl.1.gz")
			e.gzip("y.jsonl", "z.jsonl.1.gz") // not by its name
			e.start().want(append(big[:len(big):len(big)], b[0])...)
		}},
		{"a .zst of a read file", []string{"*.jsonl{,.zst}"}, func(e *env) {
			e.write("x.jsonl", text(big[:2000]...))
			e.start().want(big[:2000]...)
			e.stop()
			e.add("x.jsonl", text(big[2000:]...))
			e.zstd("x.jsonl", "x.jsonl.zst")
			e.write("y.jsonl.zst", string(zstandard([]byte(text(b[0])))))
			old(e, "y.jsonl.zst")
			e.start().want(append(big[:len(big):len(big)], b[0])...)
			e.stop()
			e.start().idle()
			e.want(append(big[:len(big):len(big)], b[0])...)
			e.wantStreams(2)
		}},
		{"a .zst that is cut short", []string{"*.zst"}, func(e *env) {
			whole := zstandard([]byte(text(incompressible(8000)...)))
			e.write("x.zst", string(whole[:len(whole)/2]))
			old(e, "x.zst")
			e.start()
			e.wantTrouble(ReasonArchive)
			e.idle()
			e.write("x.zst", string(whole))
			old(e, "x.zst")
			e.add("x.zst", "")
			e.until("the rest of it", func() bool { return e.sink.count() == 8000 })
			e.wantStreams(1)
		}},
		{"archive beside its original", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a[:5]...))
			e.write("x.jsonl.1.gz", string(packed([]byte(text(a[:3]...)))))
			old(e, "x.jsonl.1.gz")
			e.start().want(a[:5]...)
			e.wantStreams(1)
		}},
		{"archive with the beginning of another file", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(alike, b[0], b[1]))
			e.write("x.jsonl.1.gz", string(packed([]byte(text(alike, a[0])))))
			old(e, "x.jsonl.1.gz")
			e.start().want(alike, b[0], b[1], alike, a[0])
			e.wantStreams(2)
		}},
		{"archive that is shorter than an orphan", []string{"*.jsonl*"}, func(e *env) {
			e.write("x.jsonl", text(a...))
			e.start().want(a...)
			e.remove("x.jsonl")
			e.until("an orphan", func() bool { return e.orphans("x.jsonl") == 1 })
			e.write("x.jsonl.1.gz", string(packed([]byte(text(b[:3]...)))))
			old(e, "x.jsonl.1.gz")
			e.want(append(a[:len(a):len(a)], b[:3]...)...)
			e.write("x.jsonl.2.gz", string(packed([]byte(text(a...)))))
			old(e, "x.jsonl.2.gz")
			e.until("the orphan to be adopted", func() bool { return e.orphans("x.jsonl") == 0 })
			e.want(append(a[:len(a):len(a)], b[:3]...)...)
		}},
		{"cut short", []string{"*.gz"}, func(e *env) {
			lines := incompressible(500)
			whole := packed([]byte(text(lines...)))
			e.write("x.gz", string(whole[:len(whole)/2]))
			old(e, "x.gz")
			e.start()
			e.wantTrouble(ReasonArchive)
			e.idle()
			if n := e.sink.count(); n < 100 || n > 300 {
				e.Errorf("%d lines of half of 500", n)
			}
			e.write("x.gz", string(whole)) // it was still being written
			old(e, "x.gz")
			e.add("x.gz", "")
			e.want(lines...)
			e.wantStreams(1)
		}},
		{"corrupt", []string{"*.gz"}, func(e *env) {
			lines := incompressible(500)
			whole := packed([]byte(text(lines...)))
			whole[len(whole)-6] ^= 1 // in the checksum
			e.write("x.gz", string(whole))
			e.write("y.gz", "not an archive")
			e.write("z.gz", "")
			for _, n := range []string{"x.gz", "y.gz", "z.gz"} {
				old(e, n)
			}
			e.start().want(lines...)
			e.wantTrouble(ReasonArchive, ReasonArchive, ReasonArchive)
		}},
		{"start at the end", []string{"*.gz"}, func(e *env) {
			e.settings.StartAt = End
			e.write("x.gz", string(packed([]byte(text(a...)))))
			old(e, "x.gz")
			e.start().idle()
			e.want()
			e.stop()
			e.start().idle()
			e.want()
		}},
		{"while it is being written", []string{"*.gz"}, func(e *env) {
			e.prepare = func(s *Source) { s.completeAfter = time.Hour }
			whole := packed([]byte(text(a...)))
			e.start()
			e.write("x.gz", string(whole[:20]))
			e.until("it to be put off", func() bool {
				e.src.files.mu.Lock()
				defer e.src.files.mu.Unlock()
				return e.src.files.schedule.delayed > 0
			})
			e.add("x.gz", string(whole[20:]))
			at := time.Now().Add(-2 * time.Hour)
			e.must(os.Chtimes(e.path("x.gz"), at, at))
			e.until("all of it", func() bool { return e.sink.count() == len(a) })
			e.wantTrouble()
		}},
		{"line beyond the limit, and a long one", []string{"*.gz"}, func(e *env) {
			e.settings.MaxRead = minRead
			e.settings.MaxLine = 100 << 10
			long, longer := strings.Repeat("l", 90<<10), strings.Repeat("m", 300<<10)
			e.write("x.gz", string(packed([]byte(text(a[0], long, longer, a[1], longer)+longer))))
			old(e, "x.gz")
			kept := longer[:keptOfLong]
			e.start().want(a[0], long, kept, a[1], kept, kept)
		}},
	})
}

func incompressible(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	var out []string
	for range n {
		b := make([]byte, 100)
		for i := range b {
			b[i] = byte('!' + r.IntN(90))
		}
		out = append(out, string(b))
	}
	return out
}

// TestArchiveReadAt reads everywhere in an archive, forwards and back.
func TestArchiveReadAt(t *testing.T) {
	for name, pack := range map[string]func([]byte) []byte{"gz": packed, "zst": zstandard} {
		t.Run(name, func(t *testing.T) { readArchive(t, pack) })
	}
}

func readArchive(t *testing.T, pack func([]byte) []byte) {
	content := []byte(text(incompressible(3000)...))
	path := t.TempDir() + "/x"
	if err := os.WriteFile(path, pack(content), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := newUnpacker(f, minRead)
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		off := r.Int64N(int64(len(content)) + 100)
		buf := make([]byte, r.IntN(10000))
		n, err := g.ReadAt(buf, off)
		want := content[min(off, int64(len(content))):min(off+int64(len(buf)), int64(len(content)))]
		if !bytes.Equal(buf[:n], want) || (err == io.EOF) != (n < len(buf)) {
			t.Fatalf("read %d at %d: %d bytes, %v; want %d bytes", len(buf), off, n, err, len(want))
		}
	}
	if n, err := g.size(); n != int64(len(content)) || err != nil {
		t.Errorf("size: %d, %v; want %d", n, err, len(content))
	}
}

// A small archive that unpacks to a gigabyte without a line is abandoned with a problem, and soon.
func TestArchiveWithoutLines(t *testing.T) {
	for name, fill := range map[string]byte{"NULs": 0, "one endless line": 'x'} {
		t.Run(name, func(t *testing.T) {
			member := packed(bytes.Repeat([]byte{fill}, 16<<20))
			e := newEnv(t, "*.gz").poll()
			e.write("x.jsonl.gz", string(packed([]byte("first\n"))), strings.Repeat(string(member), 64))
			old := time.Now().Add(-time.Minute)
			e.must(os.Chtimes(e.path("x.jsonl.gz"), old, old))
			began := time.Now()
			for range 64 {
				z, err := gzip.NewReader(bytes.NewReader(member))
				e.must(err)
				_, err = io.Copy(io.Discard, z)
				e.must(err)
			}
			once := time.Since(began)
			began = time.Now()
			e.start().want("first")
			e.wantTrouble(ReasonArchive)
			e.idle()
			if took := time.Since(began); took > 3*once+5*time.Second {
				t.Errorf("took %v, unpacking it %v", took, once)
			}
		})
	}
}

// Lines longer than the limit are read in one pass of the archive.
func TestArchiveIsUnpackedOnce(t *testing.T) {
	const lines, size = 200, 300 << 10
	var b bytes.Buffer
	for range lines {
		b.Write(bytes.Repeat([]byte("x"), size))
		b.WriteByte('\n')
		b.Write(make([]byte, size))
	}
	path := filepath.Join(t.TempDir(), "x.gz")
	if err := os.WriteFile(path, packed(b.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	r := newUnpacker(fd, minRead)
	l := newReader(256<<10, minRead)
	st := &stream{}
	if st.fingerprint, err = fingerprintAt(r, 0, 1); err != nil {
		t.Fatal(err)
	}
	got := 0
	for {
		read, m, failed, err := l.next(st, r, unknown, true)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if read.chunk != nil {
			got += len(read.frames)
		}
		st.cursor, st.fingerprint = read.to, m
		read.release()
		if read.eof {
			break
		}
	}
	if got != lines || r.unpacked > 3*int64(b.Len()) {
		t.Errorf("%d lines, %d bytes unpacked for %d", got, r.unpacked, b.Len())
	}
}
