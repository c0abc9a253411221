package interchange

import (
	"encoding/json"
	"io"
)

// Write writes a document as one line of JSON.
func Write(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
