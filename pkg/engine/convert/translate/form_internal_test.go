package translate

import "testing"

func TestForm(t *testing.T) {
	for query, want := range map[string]Form{
		"request.object.metadata.name":                                                       PathSegment,
		"request.object.metadata.labels.a":                                                   PathSegment,
		"request.object.metadata.labels.a || 'none'":                                         PathSegment,
		"length(request.object.metadata.annotations)":                                        PathSegment,
		"sha256(request.object.metadata.annotations.a)":                                      PathSegment,
		"split(request.object.metadata.labels.a, '.') | [0]":                                 PathSegment,
		"request.object.apiVersion":                                                          PlainText,
		"keys(request.object.metadata.annotations)":                                          PlainText,
		"base64_encode(request.object.metadata.name)":                                        PlainText,
		"join('/', [request.object.metadata.name])":                                          AnyText, // for the list may be of any strings
		"replace_all(request.object.metadata.name, '-', '/')":                                PlainText,
		"request.object.metadata.annotations.a":                                              AnyText,
		"request.object.spec.a":                                                              AnyText,
		"request.object.metadata.name || request.object.metadata.annotations.a":              AnyText,
		"request.object.metadata.labels.a || 'a\"b'":                                         AnyText,
		"replace_all(request.object.metadata.name, '-', '\"')":                               AnyText,
		"to_upper(request.object.metadata.annotations.a)":                                    AnyText,
		"join(',', values(request.object.metadata.annotations))":                             AnyText,
		"lookup(request.object.metadata.annotations, request.object.metadata.name)":          AnyText,
		"to_string(request.object.metadata.annotations)":                                     AnyText,
		"base64_decode(request.object.metadata.labels.a)":                                    AnyText,
		"not_null(request.object.metadata.name, request.object.metadata.annotations.a, 'a')": AnyText,
	} {
		if got := NewScope(Options{}).Query(query).Type().Form(); got != want {
			t.Errorf("%s has form %d, want %d", query, got, want)
		}
	}
}
