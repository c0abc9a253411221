package erasure

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
)

// Report is the outcome of a scan.
type Report struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`    // as they are on the disk
	Unpacked int64 `json:"unpacked"` // decompressed
	Texts    int   `json:"texts"`    // how many names and texts were looked for
	// Paths is how often a name was found in the path of a file of the agent's own.
	Paths int     `json:"paths"`
	Found []Found `json:"found,omitempty"`
}

// Found is a file that has a name or a text.
type Found struct {
	File  string `json:"file"`
	Times int    `json:"times"`
}

// Scanner looks for texts.
type Scanner struct {
	texts  [][]byte
	paths  [][]byte // that may have one
	report Report
	found  map[string]int
}

// NewScanner returns a scanner for the names and texts of a request. paths are those of the
// agent's own files: a name is not counted in them.
func NewScanner(r *Request, paths []string) *Scanner {
	s := &Scanner{found: make(map[string]int)}
	for _, t := range append(r.Names(), r.Texts...) {
		s.texts = append(s.texts, []byte(t))
	}
	for _, p := range paths {
		for _, t := range r.Names() {
			if strings.Contains(p, t) {
				s.paths = append(s.paths, []byte(p))
				break
			}
		}
	}
	s.report.Texts = len(s.texts)
	return s
}

// Report returns the finds until now.
func (s *Scanner) Report() Report {
	r := s.report
	for file, n := range s.found {
		r.Found = append(r.Found, Found{file, n})
	}
	return r
}

// Dir scans the files of a data directory. One that is removed meanwhile is left out.
func (s *Scanner) Dir(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !d.Type().IsRegular() || strings.HasPrefix(d.Name(), requestName) {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := s.file(name, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("erase: scan %s: %w", name, err)
		}
		return nil
	})
}

func (s *Scanner) file(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s.report.Files++
	n, err := s.stream(name, f)
	s.report.Bytes += n
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err = s.stream(name, &blocks{in: f})
	s.report.Unpacked += n
	return err
}

// Bytes scans bytes that a file has in another form.
func (s *Scanner) Bytes(name string, b []byte) {
	s.report.Unpacked += int64(len(b))
	_, _ = s.stream(name, bytes.NewReader(b))
}

const (
	chunk = 1 << 20
	// margin is the longest path.
	margin = 4 << 10
)

// stream scans the bytes of a reader.
func (s *Scanner) stream(name string, in io.Reader) (total int64, err error) {
	buf := make([]byte, 0, chunk+2*margin)
	for from := 0; ; {
		n, err := io.ReadFull(in, buf[len(buf):cap(buf)])
		buf, total = buf[:len(buf)+n], total+int64(n)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return total, err
		}
		to := len(buf)
		if !last {
			to -= margin
		}
		s.search(name, buf, from, to)
		if last {
			return total, nil
		}
		keep := max(to-margin, 0)
		from = to - keep
		buf = buf[:copy(buf, buf[keep:])]
	}
}

// search counts the texts that begin in a part of a buffer.
func (s *Scanner) search(name string, buf []byte, from, to int) {
	for _, t := range s.texts {
		for at := from; at < to; {
			i := bytes.Index(buf[at:min(to+len(t)-1, len(buf))], t)
			if i < 0 {
				break
			}
			if s.inPath(buf, at+i, t) {
				s.report.Paths++
			} else {
				s.found[name]++
			}
			at += i + 1
		}
	}
}

// inPath reports whether a text that was found is a part of a path.
func (s *Scanner) inPath(buf []byte, at int, text []byte) bool {
	for _, p := range s.paths {
		for off := 0; ; off++ {
			i := bytes.Index(p[off:], text)
			if i < 0 {
				break
			}
			off += i
			if at >= off && bytes.HasPrefix(buf[at-off:], p) {
				return true
			}
		}
	}
	return false
}

// blocks reads the contents of the compressed blocks of a file of the engine, which follow each
// other from its beginning: checksum (16 bytes), codec (1), size with this and the sizes (4),
// size of the contents (4). It ends where none is. Blocks of codecs for numbers are passed over:
// they have no text.
type blocks struct {
	in   io.Reader
	rest []byte
}

const (
	blockHead = 25
	blockSum  = 16
	maxBlock  = 128 << 20
	codecNone = 0x02
	codecLZ4  = 0x82
	codecZSTD = 0x90
)

func (b *blocks) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		head := make([]byte, blockHead)
		if _, err := io.ReadFull(b.in, head); err != nil {
			return 0, io.EOF
		}
		packed, unpacked := int64(binary.LittleEndian.Uint32(head[17:])), int64(binary.LittleEndian.Uint32(head[21:]))
		if packed < blockHead-blockSum || packed > maxBlock || unpacked > maxBlock || head[16] < codecNone || head[16] > 0xa0 {
			return 0, io.EOF
		}
		block := make([]byte, blockSum+packed)
		copy(block, head)
		if _, err := io.ReadFull(b.in, block[blockHead:]); err != nil {
			return 0, io.EOF
		}
		switch head[16] {
		case codecNone, codecLZ4, codecZSTD:
			contents, err := io.ReadAll(compress.NewReader(bytes.NewReader(block)))
			if err != nil && len(contents) == 0 {
				return 0, io.EOF
			}
			b.rest = contents
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
