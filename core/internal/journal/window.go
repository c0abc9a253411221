package journal

import "io"

// window reads the records of a file through a buffer, and finds the next one
// after damage.
type window struct {
	in   io.ReaderAt
	seed uint32
	buf  []byte // bytes that were read and not parsed yet; buf[0] lies at off
	off  int64
	at   int64 // where the last record began
	lost int64 // damaged bytes since the caller set it to 0
	mem  []byte
}

// windowSize is how much is read at once; more for a longer record.
const windowSize = 1 << 20

// next parses the next whole record before limit. Without more it reads nothing from the
// file, so that the payloads of the records before, which lie in the buffer, stay valid.
func (w *window) next(r *record, limit int64, more bool) (ok bool, err error) {
	for w.off < limit {
		n, st := r.parse(w.buf, w.seed)
		switch {
		case st == whole:
			w.at = w.off
			w.skip(n)
			return true, nil
		case st == short && w.off+int64(n) <= limit:
			if !more {
				return false, nil
			}
			if err := w.fill(n, limit); err != nil {
				return false, err
			}
		default: // damaged, or it claims to be longer than the file
			if len(w.buf) == 0 {
				w.lost, w.off = w.lost+limit-w.off, limit
				break
			}
			n = nextMagic(w.buf)
			w.skip(n)
			w.lost += int64(n)
		}
	}
	return false, nil
}

func (w *window) skip(n int) {
	w.buf = w.buf[n:]
	w.off += int64(n)
}

// seek moves to another place, of perhaps another file.
func (w *window) seek(in io.ReaderAt, seed uint32, off int64) {
	w.in, w.seed, w.off, w.buf, w.lost = in, seed, off, nil, 0
}

// fill reads until the buffer has need bytes, and more if they fit.
func (w *window) fill(need int, limit int64) error {
	size := min(int64(max(need, windowSize)), limit-w.off)
	mem := w.mem
	if int64(cap(mem)) < size {
		mem = make([]byte, size)
		if size <= windowSize {
			w.mem = mem
		}
	}
	mem = mem[:size]
	have := copy(mem, w.buf)
	n, err := w.in.ReadAt(mem[have:], w.off+int64(have))
	w.buf = mem[:have+n]
	if len(w.buf) >= need {
		return nil
	}
	return err // io.EOF: the file is shorter than it was
}

// scan visits the records of a file's first size bytes. end is where the last whole
// one ends, lost how many bytes before that are damaged.
func scan(in io.ReaderAt, seed uint32, size int64, visit func(*record) error) (end, lost int64, err error) {
	w := window{in: in, seed: seed}
	var r record
	for {
		ok, err := w.next(&r, size, true)
		if err != nil || !ok {
			return end, lost, err
		}
		lost += w.lost
		w.lost, end = 0, w.off
		if err := visit(&r); err != nil {
			return end, lost, err
		}
	}
}
