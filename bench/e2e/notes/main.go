// Command notes is a decoder for the tests of the whole product: a line of its format is
// {"n":1,"s":"session","text":"..."}. The environment sets its version: revision 1 refuses
// lines with "new", revision 2 reads them. In both a line with "crash" ends the process.
package main

import (
	"errors"
	"os"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func main() {
	revision, _ := strconv.Atoi(os.Getenv("NOTES_REVISION"))
	sdk.Serve(notes{uint32(max(revision, 1))})
}

type notes struct{ revision uint32 }

func (n notes) Info() decoder.Info {
	return decoder.Info{Name: "notes", Version: "1", Revision: n.revision, Transports: []frame.Kind{frame.Line}}
}

func (n notes) New(decoder.Stream) (decoder.Decoder, error) { return &note{revision: n.revision}, nil }

type note struct {
	revision uint32
	doc      jsonv.Doc
}

var errNew = errors.New("a field that is new")

func (d *note) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	if err := d.doc.Parse(f.Data); err != nil {
		out.Problem(msg.ReasonInvalidJSON, err.Error())
		return nil
	}
	v := d.doc.Root()
	if v.Get("crash").Exists() {
		os.Exit(3)
	}
	if v.Get("new").Exists() && d.revision < 2 {
		out.Problem(msg.ReasonWrongType, errNew.Error())
		return nil
	}
	m := out.Add()
	m.Key, m.Session, m.Kind, m.Complete = strconv.FormatInt(v.Get("n").Int(), 10), v.Get("s").Str(), msg.User, msg.Complete
	m.Content, m.Time, m.Precision = v.Get("text").Text(), (1_780_000_000+v.Get("n").Int())*1e9, msg.Seconds
	return nil
}

func (d *note) Flush(*decoder.Output) error { return nil }
