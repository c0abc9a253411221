package tap

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/source/reassemble"
)

// teeBody copies a response's body as it is read. The copy is announced when the
// next read begins: by then the bytes are with the client.
type teeBody struct {
	io.ReadCloser
	queue   *queue
	pending bool
	left    int64 // bytes until the end that the head announces; negative: it announces none
}

func (b *teeBody) Read(p []byte) (int, error) {
	if b.pending {
		b.pending = false
		b.queue.wake()
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.queue.put(fromServer, p[:n])
		b.pending = true
		if b.left -= int64(n); b.left == 0 {
			b.queue.end(true) // with these bytes the client has the whole response, and may go on at once
		}
	}
	if err != nil {
		b.queue.close(err == io.EOF)
	}
	return n, err
}

func (b *teeBody) Close() error {
	b.queue.close(false) // unless its end was read
	return b.ReadCloser.Close()
}

// switched looks at an answer that turns the connection into another protocol.
func (x *exchange) switched(res *http.Response) error {
	conn, ok := res.Body.(io.ReadWriteCloser)
	websocket := len(res.Header["Sec-Websocket-Accept"]) > 0 && upgrades(res.Request.Header) && upgrades(res.Header)
	if x.format = x.tap.pickSocket(x.path, x.host); x.format == "" || !ok || !websocket {
		x.request.release()
		return nil
	}
	client, server, known := reassemble.Agreed(res.Header["Sec-Websocket-Extensions"])
	if !known {
		x.tap.Logger.Warn("a WebSocket with an unknown extension is not recorded", "path", x.request.name)
		x.request.release()
		return nil
	}
	x.socket[fromClient] = reassemble.New(int(x.tap.MaxBody), true, client)
	x.socket[fromServer] = reassemble.New(int(x.tap.MaxBody), false, server)
	x.record()
	res.Body = &teeConn{conn, x.queue}
	return nil
}

// upgrades reports whether the headers ask for, or grant, a WebSocket. httputil.ReverseProxy refuses an answer that grants
// what was not asked for.
func upgrades(h http.Header) bool {
	return hopByHop(h, "Upgrade") && strings.EqualFold(h.Get("Upgrade"), "websocket")
}

// teeConn copies both directions of an upgraded connection. Reads and writes come
// from a goroutine each.
type teeConn struct {
	io.ReadWriteCloser
	queue *queue
}

func (c *teeConn) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	if n > 0 {
		c.queue.put(fromServer, p[:n])
		c.queue.wake()
	}
	return n, err
}

// Write copies p first: the answer to p may be read before Write returns.
func (c *teeConn) Write(p []byte) (int, error) {
	c.queue.put(fromClient, p)
	n, err := c.ReadWriteCloser.Write(p)
	c.queue.wake()
	return n, err
}

// CloseWrite passes a half-closed connection on.
func (c *teeConn) CloseWrite() error {
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.New("tap: the connection cannot be half closed")
}

func (c *teeConn) Close() error {
	c.queue.close(false)
	return c.ReadWriteCloser.Close()
}
