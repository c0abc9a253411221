package export

import (
	"bytes"
	"encoding/gob"
	"fmt"
)

// encoding is the version of MarshalBinary. gob names the fields, so a field more
// or less does not need another.
const encoding = 1

// plain is Batch without its methods.
type plain Batch

// MarshalBinary encodes the batch exactly, so that another process can export it later. A
// Text that lies in a frame is copied.
func (b *Batch) MarshalBinary() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte(encoding)
	if err := gob.NewEncoder(&out).Encode((*plain)(b)); err != nil {
		return nil, fmt.Errorf("batch %s: encode: %w", b.ID, err)
	}
	return out.Bytes(), nil
}

// UnmarshalBinary decodes the bytes of MarshalBinary.
func (b *Batch) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != encoding {
		return fmt.Errorf("batch: of another version of Earshot, or none")
	}
	*b = Batch{}
	if err := gob.NewDecoder(bytes.NewReader(data[1:])).Decode((*plain)(b)); err != nil {
		return fmt.Errorf("batch: decode: %w", err)
	}
	return nil
}
