"""Compares the declarations of tutti/_api.py with include/tutti/tutti.h."""

import ctypes
import os
import re
import unittest

from tutti import _api

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include", "tutti", "tutti.h")
FIELDS = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "const char*": ctypes.c_char_p, "uint32_t": ctypes.c_uint32,
          "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "double": ctypes.c_double,
          "const tutti_tuning_options*": ctypes.POINTER(_api.TuningOptions)}
VALUES = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
          "tutti_type": ctypes.c_int, "tutti_status": ctypes.c_int, "tutti_reduction": ctypes.c_int32}


def code():
    with open(HEADER, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    text = re.sub(r"void \(\*(\w+)\)\([^)]*\)", r"callback* \1", text)  # Parameters that are functions.
    return re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def enumerators(body):
    """Returns {name without tutti_: value}."""
    values, value = {}, -1
    for entry in filter(None, (entry.strip() for entry in body.split(","))):
        name, _, given = (part.strip() for part in entry.partition("="))
        value = int(given) if given else value + 1
        values[name.removeprefix("tutti_")] = value
    return values


def functions():
    """Returns {name without tutti_: (result, [types of arguments])}."""
    found = {}
    for result, name, arguments in re.findall(r"TUTTI_API ([\w ]+\*?)\s*tutti_(\w+)\(([^)]*)\)", code()):
        types = [re.sub(r"\s+", " ", re.sub(r"\b\w+$", "", argument.strip())).strip()
                 for argument in arguments.split(",") if argument.strip() != "void"]
        found[name] = (result.strip(), types)
    return found


class Header(unittest.TestCase):
    def test_statuses_are_those_of_the_header(self):
        body = re.search(r"typedef enum \{([^}]*)\} tutti_status;", code()).group(1)
        self.assertEqual(enumerators(body), {member.name: member.value for member in _api.Status})

    def test_types_are_those_of_the_header(self):
        body = re.search(r"typedef enum \{([^}]*)\} tutti_type;", code()).group(1)
        self.assertEqual(enumerators(body), {member.name: member.value for member in _api.Type})

    def test_reductions_are_those_of_the_header(self):
        body = re.search(r"\nenum \{([^}]*)\};\s*typedef int32_t tutti_reduction;", code()).group(1)
        self.assertEqual(enumerators(body), {member.name: member.value for member in _api.Reduction})

    def test_structs_have_the_fields_of_the_header(self):
        found = dict((name, body) for body, name in re.findall(r"typedef struct \{([^}]*)\} (\w+);", code()))
        self.assertEqual(set(found), set(_api.STRUCTS))
        for name, struct in _api.STRUCTS.items():
            fields = []
            for line in filter(None, (line.strip() for line in found[name].split(";"))):
                kind, field, length = re.fullmatch(r"([\w ]+\*?)\s*\b(\w+)(?:\[(\d+)\])?", line).groups()
                fields.append((field, ctypes.c_char * int(length) if length else FIELDS[kind.strip()]))
            self.assertEqual(fields, list(struct._fields_), name)

    def test_prototypes_and_unused_functions_are_all_functions(self):
        self.assertEqual(set(functions()), set(_api.PROTOTYPES) | _api.NOT_USED)
        self.assertFalse(set(_api.PROTOTYPES) & _api.NOT_USED)

    def test_prototypes_have_the_arguments_of_the_header(self):
        found = functions()
        for name, arguments in _api.PROTOTYPES.items():
            result, types = found[name]
            self.assertEqual(len(arguments), len(types), name)
            self.assertEqual(result, {ctypes.c_char_p: "const char*", ctypes.c_int: "int"}.get(
                _api.RESULTS.get(name), "tutti_status"), name)
            for given, wanted in zip(arguments, types):
                if wanted in VALUES:
                    self.assertIs(given, VALUES[wanted], f"{name}: {wanted}")
                else:  # Pointers and handles.
                    self.assertEqual(ctypes.sizeof(given), 8, f"{name}: {wanted}")
                    self.assertNotIn(given, VALUES.values(), f"{name}: {wanted}")
                    self.assertEqual(given is _api.CallbackFunction, wanted == "callback*", f"{name}: {wanted}")

    def test_version_is_that_of_the_header(self):
        with open(HEADER, encoding="utf-8") as file:
            numbers = re.findall(r"#define TUTTI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
        self.assertEqual(_api.version(), ".".join(numbers))


if __name__ == "__main__":
    unittest.main()
