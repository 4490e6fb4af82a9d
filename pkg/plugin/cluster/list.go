package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RawList is one page of a listing.
type RawList struct {
	APIVersion, Kind string // of the list
	Items            []RawItem
	// Continue is the token of the next page; empty on the last one.
	Continue string
	// ResourceVersion is that of the state of the cluster that the list shows.
	ResourceVersion string
	// Remaining is how many objects follow, and negative where the server does not
	// say so: it does not know for listings with a selector.
	Remaining int64
}

// RawItem is an object that has not been decoded. Its fields are what a selection
// needs to know.
type RawItem struct {
	// APIVersion and Kind are empty in most lists, which have them once for all.
	APIVersion, Kind                      string
	Namespace, Name, UID, ResourceVersion string
	Labels                                map[string]string
	// Controlled reports whether an owner reference names a controller.
	Controlled bool

	text   string
	shared *fieldSets // with the other items of its list; nil if it is of none
}

// errNoItems reports an answer that would read as a list without objects, and is none.
var errNoItems = errors.New("it has no items")

// SplitRawList splits the JSON of a list. One without items is an error.
func SplitRawList(body []byte) (RawList, error) {
	list, isList := RawList{Remaining: -1}, false
	s := scanner{text: string(body)}
	shared := &fieldSets{known: map[string]map[string]any{}}
	err := s.object(func(key string) (err error) {
		switch {
		case key == "apiVersion":
			return s.only(key, key, &list.APIVersion)
		case key == "kind":
			return s.only(key, key, &list.Kind)
		case key == "metadata" && s.next() == '{':
			return s.object(func(key string) error { return s.listMetadata(key, &list) })
		case key == "items" && s.next() == '[':
			isList = true
			return s.array(func() error {
				item, err := s.item()
				item.shared = shared
				list.Items = append(list.Items, item)
				return err
			})
		default:
			text, err := s.skip()
			isList = isList || key == "items" && strings.TrimSpace(text) == "null"
			return err
		}
	})
	if err == nil && !isList {
		err = errNoItems
	}
	if err != nil {
		return RawList{}, fmt.Errorf("the answer is no list: %w", err)
	}
	if list.Continue == "" {
		list.Remaining = 0
	}
	return list, nil
}

// listMetadata reads a field of a list's own metadata.
func (s *scanner) listMetadata(key string, list *RawList) error {
	switch key {
	case "continue":
		return s.only(key, key, &list.Continue)
	case "resourceVersion":
		return s.only(key, key, &list.ResourceVersion)
	}
	if key != "remainingItemCount" {
		_, err := s.skip()
		return err
	}
	text, err := s.skip()
	if n, bad := strconv.ParseInt(strings.TrimSpace(text), 10, 64); bad == nil {
		list.Remaining = n
	}
	return err
}

// ReadRawItem reads a single object as an item.
func ReadRawItem(body []byte) (RawItem, error) {
	s := scanner{text: string(body)}
	item, err := s.item()
	if s.next(); err == nil && s.pos != len(s.text) {
		err = s.fail("the end")
	}
	if err != nil {
		return RawItem{}, fmt.Errorf("the answer is no object: %w", err)
	}
	return item, nil
}

// Decode decodes the object, with int64 and float64 for numbers. Each call makes a new object, which must
// not be changed: it shares parts of its managedFields with others of the page. It keeps its own text alive, not the page's.
func (i RawItem) Decode() (map[string]any, error) {
	s := scanner{text: strings.Clone(i.text), shared: i.shared}
	object, err := s.mapValue()
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", strings.TrimPrefix(i.Namespace+"/"+i.Name, "/"), err)
	}
	return object, nil
}

// item reads what is wanted of the next object and steps over it.
func (s *scanner) item() (RawItem, error) {
	var item RawItem
	s.next()
	start := s.pos
	err := s.object(func(key string) error {
		switch {
		case key == "apiVersion":
			return s.only(key, key, &item.APIVersion)
		case key == "kind":
			return s.only(key, key, &item.Kind)
		case key == "metadata" && s.next() == '{':
			return s.metadata(&item)
		}
		_, err := s.skip()
		return err
	})
	item.text = s.text[start:s.pos]
	return item, err
}

func (s *scanner) metadata(item *RawItem) error {
	return s.object(func(key string) error {
		switch {
		case key == "name":
			return s.only(key, "name", &item.Name)
		case key == "namespace":
			return s.only(key, "namespace", &item.Namespace)
		case key == "uid":
			return s.only(key, "uid", &item.UID)
		case key == "resourceVersion":
			return s.only(key, "resourceVersion", &item.ResourceVersion)
		case key == "labels" && s.next() == '{':
			item.Labels = map[string]string{}
			return s.object(func(key string) error {
				var value string
				err := s.only(key, key, &value)
				item.Labels[key] = value
				return err
			})
		case key == "ownerReferences" && s.next() == '[':
			return s.array(func() error { return s.owner(item) })
		default:
			_, err := s.skip()
			return err
		}
	})
}

func (s *scanner) owner(item *RawItem) error {
	return s.object(func(key string) error {
		value, err := s.skip()
		if key == "controller" && strings.TrimSpace(value) == "true" {
			item.Controlled = true
		}
		return err
	})
}

// only reads the string of a wanted key into out and skips anything else.
func (s *scanner) only(key, wanted string, out *string) (err error) {
	if key == wanted && s.next() == '"' {
		*out, err = s.string()
		return err
	}
	_, err = s.skip()
	return err
}
