package httpd

import (
	"bytes"
	"io"
	"os"
)

// spoolMemory is how much of a held result stays in memory.
const spoolMemory = 4 << 20

// spool holds a result back until it is whole: in memory first, then in a file.
type spool struct {
	dir  string
	mem  bytes.Buffer
	file *os.File
}

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.mem.Len()+len(p) <= spoolMemory {
		return s.mem.Write(p)
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "result-")
		if err != nil {
			return 0, err
		}
		os.Remove(f.Name()) // it lives as long as it is open
		s.file = f
	}
	return s.file.Write(p)
}

func (s *spool) copyTo(w io.Writer) error {
	if _, err := w.Write(s.mem.Bytes()); err != nil || s.file == nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := s.file.WriteTo(w)
	return err
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
	}
}
