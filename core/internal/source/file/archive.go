package file

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// unpacker reads the content of an archive at any offset. A window of the last bytes makes it
// cheap to go back to the beginning of a line; to go back further it unpacks the file from
// its beginning.
type unpacker struct {
	fd     *os.File
	z      packing
	off    int64  // bytes unpacked
	window []byte // the last of them, up to limit or twice that
	limit  int
	end    error // at off: io.EOF, or how the file is corrupt

	unpacked int64 // in all passes together
}

// packing is a decompressor.
type packing interface {
	io.Reader
	Reset(r io.Reader) error
}

// maxWindow is how far back a .zst may refer: more than every level of zstd needs but the long and ultra ones.
const maxWindow = 32 << 20

// packingOf returns the decompressor of a file, by its first bytes.
func packingOf(fd *os.File) (p packing, err error) {
	var magic [4]byte
	if _, err := fd.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	if string(magic[:]) == "\x28\xb5\x2f\xfd" {
		p, err = zstd.NewReader(fd, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	} else {
		p, err = gzip.NewReader(fd)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func newUnpacker(fd *os.File, maxRead int) *unpacker {
	return &unpacker{fd: fd, limit: maxRead + 2*printLen}
}

func (g *unpacker) restart() error {
	if _, err := g.fd.Seek(0, io.SeekStart); err != nil {
		return err
	}
	g.off, g.window, g.end = 0, g.window[:0], nil
	if g.z == nil {
		g.z, g.end = packingOf(g.fd)
	} else {
		g.end = g.z.Reset(g.fd)
	}
	if g.end == io.EOF { // not even a header
		g.end = io.ErrUnexpectedEOF
	}
	g.end = g.corrupt(g.end)
	return nil
}

func (g *unpacker) ReadAt(p []byte, off int64) (n int, err error) {
	if g.z == nil && g.end == nil || off < g.off-int64(len(g.window)) {
		if err := g.restart(); err != nil {
			return 0, err
		}
	}
	var skip [8 << 10]byte
	for g.off < off {
		if err := g.read(skip[:min(int64(len(skip)), off-g.off)]); err != nil {
			return 0, err
		}
	}
	if off < g.off {
		n = copy(p, g.window[int64(len(g.window))-(g.off-off):])
	}
	for n < len(p) {
		was := g.off
		err := g.read(p[n:])
		n += int(g.off - was)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// read unpacks up to len(p) bytes.
func (g *unpacker) read(p []byte) error {
	if g.end != nil {
		return g.end
	}
	n, err := g.z.Read(p)
	g.off += int64(n)
	g.unpacked += int64(n)
	g.window = append(g.window, p[:n]...)
	if len(g.window) > 2*g.limit {
		g.window = append(g.window[:0], g.window[len(g.window)-g.limit:]...)
	}
	g.end = g.corrupt(err)
	return g.end
}

// archiveError is that of a corrupt archive.
type archiveError struct {
	error
	off int64 // unpacked up to here
}

func (e archiveError) Error() string { return fmt.Sprintf("%v after %d bytes", e.error, e.off) }

// corrupt returns an archiveError for an error that is none of the file system.
func (g *unpacker) corrupt(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return err
	}
	return archiveError{err, g.off}
}

// size unpacks everything and returns its size.
func (g *unpacker) size() (int64, error) {
	for {
		var b [1]byte
		_, err := g.ReadAt(b[:], g.off)
		if err == io.EOF {
			return g.off, nil
		}
		if err != nil {
			return 0, err
		}
		if err := g.read(make([]byte, 32<<10)); err != nil && err != io.EOF {
			return 0, err
		}
	}
}
