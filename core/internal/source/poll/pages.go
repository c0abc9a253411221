package poll

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/config/spec"
)

// Pages describes how an API divides a list into pages: by number, or by a cursor.
type Pages struct {
	// JSON path of the list in an answer that is an object, such as "data.items".
	Items string `yaml:"items" json:"items"`
	// Query parameter with the number of the page, from 1.
	Number string `yaml:"number" json:"number"`
	// JSON path of the number of pages. Pages also end with an empty one, and with one that
	// repeats the page before.
	Total string `yaml:"total" json:"total"`
	// Query parameter with the cursor of the page; the first page has none. A full page is
	// requested once: the API only appends.
	After string `yaml:"after" json:"after"`
	// Field of the last item of a full page that is the next cursor.
	Cursor string `yaml:"cursor" json:"cursor"`
	// JSON path of the next cursor in the answer, instead of cursor: a page that has it is
	// full.
	Next string `yaml:"next" json:"next"`
	// Query parameter with the number of items of a page.
	Limit string `yaml:"limit" json:"limit"`
	// Items of a page when the URL does not have that parameter.
	Size int `yaml:"size" json:"size"`
	// Query parameters to add unless the URL has them.
	Query map[string]string `yaml:"query" json:"query"`
	// Requests for the items of a list, one by one.
	Each *Each `yaml:"each" json:"each"`
}

// Each describes a list of which not the list but each of its items is recorded, by a request
// of its own that is repeated when the item has changed.
type Each struct {
	// End of the URL's path by which the URL is such a list.
	List string `yaml:"list" json:"list"`
	// Field of an item that names it.
	ID string `yaml:"id" json:"id"`
	// Path of the item's request below the list, with {{id}}.
	Path string `yaml:"path" json:"path"`
	// Query parameters of the list that the item's request does not have.
	Without []string `yaml:"without" json:"without"`
}

// SetDefaults implements spec.Defaults.
func (p *Pages) SetDefaults() { *p = Pages{Size: 100} }

// Validate implements spec.Section.
func (p *Pages) Validate(c *spec.Check) {
	switch {
	case p.Number == "" && p.After == "":
		c.Report("number", "required, or after", "pages are turned by a number or by a cursor")
	case p.Number != "" && p.After != "":
		c.Report("after", "excludes number", "leave one of them out")
	case p.After != "" && p.Cursor == "" && p.Next == "":
		c.Report("cursor", "required by after, or next", "")
	}
	if p.Cursor != "" {
		c.RequiredBy("limit", p.Limit, "cursor")
	}
	if p.Size <= 0 {
		c.Report("size", "must be greater than 0", "")
	}
	if p.Each == nil {
		return
	}
	each := c.In("each")
	each.Required("list", p.Each.List)
	each.Required("id", p.Each.ID)
	if p.Number == "" {
		each.Report("", "needs pages by number", "")
	}
	if each.Required("path", p.Each.Path) && !strings.Contains(p.Each.Path, "{{id}}") {
		each.Report("path", "no {{id}} in it names the item", "")
	}
}

// lists reports whether the URL is a list whose items are requested one by one.
func (p *Pages) lists(u *url.URL) bool {
	return p != nil && p.Each != nil && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), p.Each.List)
}

// numbered reports whether pages are turned by their number.
func (p *Pages) numbered() bool { return p.Number != "" }

// page returns the URL of a page: by its number, or behind the cursor.
func (p *Pages) page(u url.URL, number int, cursor string) *url.URL {
	q := u.Query()
	for name, value := range p.Query {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	if p.numbered() {
		q.Set(p.Number, strconv.Itoa(number))
	} else {
		if p.Limit != "" {
			q.Set(p.Limit, strconv.Itoa(p.limit(q)))
		}
		if cursor != "" {
			q.Set(p.After, cursor)
		}
	}
	u.RawQuery = q.Encode()
	return &u
}

// limit is the number of items of a full page.
func (p *Pages) limit(q url.Values) int {
	if n := atoi(q.Get(p.Limit)); n > 0 {
		return n
	}
	return p.Size
}

// items returns the items of an answer: a list, or an object with one.
func (p *Pages) items(answer []byte) []json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(answer, &all) != nil && p.Items != "" {
		_ = json.Unmarshal(lookup(answer, p.Items), &all)
	}
	return all
}

// next returns the number of pages, empty when the answer does not have it, or the cursor
// behind a full page. empty reports a page without items.
func (p *Pages) next(answer []byte, q url.Values) (next string, empty bool) {
	all := p.items(answer)
	switch {
	case p.numbered():
		if total := atoi(text(lookup(answer, p.Total))); total > 0 {
			next = strconv.Itoa(total)
		}
	case p.Next != "":
		next = text(lookup(answer, p.Next))
	case len(all) >= p.limit(q):
		next = text(lookup(all[len(all)-1], p.Cursor))
	}
	return next, len(all) == 0
}

// lookup returns the value at a path of field names joined by dots; nil when there is none.
func lookup(value json.RawMessage, path string) json.RawMessage {
	if path == "" {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return nil
		}
		value = object[name]
	}
	return value
}

// text returns a JSON string or number as text.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}
