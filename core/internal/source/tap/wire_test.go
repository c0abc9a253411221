package tap

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
)

// reader is a connection on which tests write bytes and read answers.
type reader struct {
	net.Conn
	br *bufio.Reader
}

func newReader(c net.Conn) *reader { return &reader{c, bufio.NewReader(c)} }

// send writes the text in random pieces.
func (r *reader) send(rng *rand.Rand, text string) {
	for len(text) > 0 {
		n := len(text)
		if rng.IntN(2) == 0 {
			n = 1 + rng.IntN(len(text))
		}
		if _, err := io.WriteString(r.Conn, text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
}
