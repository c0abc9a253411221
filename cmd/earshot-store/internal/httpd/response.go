package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/native"
)

// idle is how long a client may neither read nor write a byte.
const idle = 60 * time.Second

// response sends the answer. Nothing goes out before the first byte of a result,
// so an error until then still has a status of its own. Results pass
//
//	Native revision > block compression > content encoding > wire or spool
//
// and every layer below the first takes any cut of the bytes.
type response struct {
	w       http.ResponseWriter
	ctl     *http.ResponseController
	req     *request
	version string
	tag     string // of an exception behind the first byte

	sent bool      // something may have reached the client
	held *spool    // keeps everything until finish, or nil
	out  io.Writer // the top of the layers; nil before open
	enc  encoder   // the content encoding among them, or nil
}

func newResponse(w http.ResponseWriter, req *request, version, dir string) *response {
	r := &response{w: w, ctl: http.NewResponseController(w), req: req, version: version, tag: newID()[:16]}
	if req.wait {
		r.held = &spool{dir: dir}
	}
	return r
}

// open builds the layers for a result in this format.
func (r *response) open(format string) error {
	r.out = wire{r}
	if r.held != nil {
		r.out = r.held
	}
	if r.req.encoding != "" {
		enc, err := newEncoder(r.req.encoding, r.out)
		if err != nil {
			return err
		}
		r.enc, r.out = enc, enc
	}
	if r.req.blockCompress {
		r.out = newBlockWriter(r.out, r.req.method)
	}
	if r.req.revision > 0 && strings.EqualFold(format, "Native") {
		r.out = native.NewWriter(r.out, r.req.revision)
	}
	h := r.w.Header()
	h.Set("Content-Type", contentType(format))
	h.Set("X-ClickHouse-Format", format)
	h.Set("X-ClickHouse-Exception-Tag", r.tag)
	if r.enc != nil {
		h.Set("Content-Encoding", r.req.encoding)
	}
	return nil
}

// send passes on a piece of a result. Native is sent in whole blocks.
func (r *response) send(format string, p []byte) error {
	if r.out == nil {
		if err := r.open(format); err != nil {
			return err
		}
	}
	if _, err := r.out.Write(p); err != nil {
		return err
	}
	if r.held != nil {
		return nil
	}
	if r.enc != nil {
		if err := r.enc.Flush(); err != nil {
			return err
		}
	}
	return r.ctl.Flush()
}

// finish ends a result that is whole.
func (r *response) finish() error {
	if r.enc != nil {
		if err := r.enc.Close(); err != nil {
			return err
		}
	}
	if r.held != nil {
		return r.held.copyTo(wire{r})
	}
	return nil
}

// close releases the buffers and files of the response.
func (r *response) close() {
	if r.held != nil {
		r.held.close()
	}
	r.ctl.SetWriteDeadline(time.Time{})
}

// wire is the client. It sets a deadline for every piece, not for the whole.
type wire struct{ r *response }

func (w wire) Write(p []byte) (int, error) {
	w.r.sent = true
	for done := 0; done < len(p); {
		w.r.ctl.SetWriteDeadline(time.Now().Add(idle))
		n, err := w.r.w.Write(p[done:min(done+frame, len(p))])
		done += n
		if err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// summary sets ClickHouse's header with the statement's figures.
func (r *response) summary(st engine.Stats) {
	b, _ := json.Marshal(map[string]string{
		"read_rows": strconv.FormatUint(st.RowsRead, 10), "read_bytes": strconv.FormatUint(st.BytesRead, 10),
		"written_rows": strconv.FormatUint(st.RowsWritten, 10), "written_bytes": strconv.FormatUint(st.BytesWritten, 10),
	})
	r.w.Header().Set("X-ClickHouse-Summary", string(b))
}

// fail reports err. Behind the first byte of a result it frames the text, and
// then panics with http.ErrAbortHandler to cut the connection.
func (r *response) fail(err error) {
	var e *engine.Exception
	switch {
	case errors.As(err, &e):
	case errors.Is(err, errStopping):
		e = engine.Cancelled.New("The store is shutting down.")
	case errors.Is(err, context.Canceled) && !r.sent:
		return // the client is gone
	default:
		e = &engine.Exception{Code: 1002, Name: "UNKNOWN_EXCEPTION", Message: err.Error()}
	}
	text := fmt.Sprintf("%s (version %s)", e.Error(), r.version)
	if !r.sent {
		h := r.w.Header()
		for _, name := range []string{"Content-Encoding", "X-ClickHouse-Format", "X-ClickHouse-Summary", "X-ClickHouse-Exception-Tag"} {
			h.Del(name)
		}
		h.Set("Content-Type", "text/plain; charset=UTF-8")
		h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.Code))
		r.w.WriteHeader(statusOf(e.Code))
		io.WriteString(wire{r}, text+"\n")
		return
	}
	var to io.Writer = wire{r} // the frame is never block-compressed: that is how clients find it
	if r.enc != nil {
		to = r.enc
	}
	const mark = "\r\n__exception__\r\n"
	fmt.Fprintf(to, "%s%s\r\n%s\n%d %s%s", mark, r.tag, text, len(text)+1, r.tag, mark)
	if r.enc != nil {
		r.enc.Close()
	}
	r.ctl.Flush()
	panic(http.ErrAbortHandler)
}

// contentType is ClickHouse's media type of a format.
func contentType(format string) string {
	f := strings.ToLower(format)
	switch {
	case strings.HasSuffix(f, "eachrow"), strings.HasPrefix(f, "jsonl"), f == "ndjson":
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(f, "json"):
		return "application/json; charset=UTF-8"
	case strings.HasPrefix(f, "csv"):
		return "text/csv; charset=UTF-8; header=" + map[bool]string{true: "present", false: "absent"}[strings.Contains(f, "withnames")]
	case strings.HasPrefix(f, "tsv"), strings.HasPrefix(f, "tabseparated"):
		return "text/tab-separated-values; charset=UTF-8"
	case f == "xml":
		return "application/xml; charset=UTF-8"
	case f == "native", strings.HasPrefix(f, "rowbinary"), f == "parquet", f == "arrow", f == "arrowstream", f == "orc", f == "avro", f == "msgpack":
		return "application/octet-stream"
	}
	return "text/plain; charset=UTF-8"
}
