package source

import (
	"net/http"
	"time"

	"github.com/earshot-dev/earshot/core/retry"
)

// Answered is the error of a server that answered something other than it was asked for.
type Answered struct {
	Text  string
	After time.Duration // the pause that it asks for; 0: none
	// Lasting: it will not be otherwise until a person changes something, by its status.
	Lasting bool
}

func (e *Answered) Error() string { return e.Text }

// maxAfter bounds the pause that a server can ask for.
const maxAfter = time.Hour

// NewAnswered is the error of a response, in words.
func NewAnswered(res *http.Response, text string) *Answered {
	lasting := res.StatusCode < http.StatusInternalServerError
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		lasting = false
	}
	return &Answered{text, min(retry.ParseAfter(res.Header.Get("Retry-After"), time.Now()), maxAfter), lasting}
}
