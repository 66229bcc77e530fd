#include <algorithm>
#include <cstring>

#include "tests/ptx/machine/source.h"
#include "tests/ptx/machine/tokens.h"

namespace tutti::ptx {
namespace {

std::uint32_t bytes_of_type(std::string_view type) {
  if (type == ".pred") return 1;
  std::uint32_t bits = 0;
  for (const char c : type) {
    if (c >= '0' && c <= '9') bits = bits * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return bits / 8;
}

class Parser {
 public:
  explicit Parser(Source& source) : source_(source), tokens_(tokenize(source.text)) {}

  Status parse() {
    while (!peek().empty()) TUTTI_CHECK_OK(parse_top());
    return {};
  }

 private:
  std::string_view peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].text; }
  std::string_view take() {
    const std::string_view text = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return text;
  }
  bool take_if(std::string_view text) {
    if (peek() != text) return false;
    take();
    return true;
  }
  Status error(const std::string& what) const {
    return invalid_argument(source_.name + ":" + std::to_string(tokens_[at_].line) + ": " + what + " at '" +
                            std::string(peek()) + "'");
  }
  Status expect(std::string_view text) {
    return take_if(text) ? Status() : error("the PTX parser expects '" + std::string(text) + "'");
  }
  void skip_to(std::string_view text) {
    while (!peek().empty() && peek() != text) take();
    take();
  }
  std::int64_t number() {
    std::int64_t value = 0;
    const bool negative = take_if("-");
    parse_number(take(), value);
    return negative ? -value : value;
  }

  Status parse_top();
  Status parse_function(bool is_kernel);
  Status parse_variable(std::string_view space, bool is_extern);
  Status parse_storage(Storage& storage);
  Status parse_initial(Storage& storage, std::uint32_t element);
  Status parse_parameters(std::vector<Storage>& to);
  void parse_limits();
  Status parse_body();
  Status parse_declaration();
  Status parse_registers();
  Status parse_statement();
  Status parse_operand(Operand& operand);
  Status parse_memory(Operand& operand);
  Status parse_list(Operand& operand, std::string_view end);
  void resolve(std::string_view name, Operand& operand) const;
  void parse_file();
  void parse_location();
  void skip_section();
  void add_register(std::string_view name, Width width);

  struct Scope {
    std::unordered_map<std::string_view, std::int32_t> registers, arguments;
  };

  Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::uint32_t location_ = 0;  // The latest .loc
};

Status Parser::parse_top() {
  const std::string_view word = take();
  if (word == ".version") return take(), Status();
  if (word == ".address_size") return take(), Status();
  if (word == ".target") {
    source_.target = take();
    while (take_if(",")) take();
    return {};
  }
  if (word == ".visible" || word == ".weak" || word == ";" || word == ".common") return {};
  if (word == ".extern") {
    const std::string_view space = take();
    if (space == ".func") return skip_to(";"), Status();
    return parse_variable(space, true);
  }
  if (word == ".global" || word == ".const" || word == ".shared") return parse_variable(word, false);
  if (word == ".func" || word == ".entry") return parse_function(word == ".entry");
  if (word == ".file") return parse_file(), Status();
  if (word == ".loc") return parse_location(), Status();
  if (word == ".section") return skip_section(), Status();
  if (word == ".pragma") return skip_to(";"), Status();
  --at_;
  return error("the PTX parser does not know this directive");
}

void Parser::parse_file() {
  const auto index = static_cast<std::uint32_t>(number());
  std::string_view path = take();
  if (path.size() >= 2) path = path.substr(1, path.size() - 2);
  source_.files[index] = std::string(path);
  while (take_if(",")) take();
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
void Parser::parse_location() {
  const auto next = [this] { return static_cast<std::uint32_t>(number()); };
  const Position at = {next(), next(), next()};
  Position inlined_at;
  while (take_if(",")) {
    if (take() == "inlined_at") {
      inlined_at = {next(), next(), next()};
    } else if (take(); take_if("+")) {
      take();
    }
  }
  location_ = source_.locations.add(at, inlined_at);
}

void Parser::skip_section() {
  skip_to("{");
  for (int depth = 1; depth > 0 && !peek().empty();) {
    const std::string_view word = take();
    depth += word == "{" ? 1 : word == "}" ? -1 : 0;
  }
}

// [.align n] [.ptr ...] .type name[count]
Status Parser::parse_storage(Storage& storage) {
  std::uint32_t element = 0;
  while (peek().starts_with('.')) {
    const std::string_view word = take();
    if (word == ".align") {
      storage.alignment = static_cast<std::uint32_t>(number());
    } else if (word != ".ptr" && word != ".global" && word != ".shared" && word != ".const" && word != ".local" &&
               word != ".param") {
      element = bytes_of_type(word);
    }
  }
  storage.name = take();
  storage.bytes = element;
  storage.alignment = std::max({storage.alignment, element, 1U});
  while (take_if("[")) {
    storage.bytes *= peek() == "]" ? 0 : static_cast<std::uint32_t>(number());
    TUTTI_CHECK_OK(expect("]"));
  }
  return take_if("=") ? parse_initial(storage, element) : Status();
}

Status Parser::parse_initial(Storage& storage, std::uint32_t element) {
  storage.initial.assign(storage.bytes, std::byte{0});
  const bool braces = take_if("{");
  std::size_t offset = 0;
  do {
    if (peek() == "}") break;
    std::int64_t value = 0;
    const bool negative = take_if("-");
    if (!parse_number(peek(), value)) return error("the machine supports only numbers as initial values");
    take();
    if (negative) value = -value;
    if (offset + element > storage.initial.size()) return error("too many initial values");
    std::memcpy(storage.initial.data() + offset, &value, element);
    offset += element;
  } while (take_if(","));
  return braces ? expect("}") : Status();
}

Status Parser::parse_variable(std::string_view space, bool is_extern) {
  do {
    Storage storage;
    storage.is_extern = is_extern;
    TUTTI_CHECK_OK(parse_storage(storage));
    if (is_extern && space != ".shared") continue;
    (space == ".shared" ? source_.shared : source_.variables).push_back(storage);
    if (space != ".shared")
      source_.variable_infos.push_back({std::string(storage.name), storage.bytes, space == ".const"});
  } while (take_if(","));
  return expect(";");
}

Status Parser::parse_parameters(std::vector<Storage>& to) {
  if (!take_if("(")) return {};
  while (!take_if(")")) {
    if (peek().empty()) return error("the parameter list does not end");
    if (take_if(",")) continue;
    Storage storage;
    TUTTI_CHECK_OK(parse_storage(storage));
    to.push_back(storage);
  }
  return {};
}

void Parser::parse_limits() {
  while (peek().starts_with('.')) {
    const std::string_view word = take();
    std::uint32_t product = 1;
    if (word == ".noreturn" || word == ".explicitcluster") continue;
    do product *= static_cast<std::uint32_t>(number());
    while (take_if(","));
    if (word == ".maxntid" || word == ".reqntid") function_->threads_max = product;
  }
}

Status Parser::parse_function(bool is_kernel) {
  Function function;
  function.is_kernel = is_kernel;
  TUTTI_CHECK_OK(parse_parameters(function.results));
  function.name = take();
  TUTTI_CHECK_OK(parse_parameters(function.parameters));
  function_ = &function;
  parse_limits();
  if (take_if(";")) return {};  // A declaration.
  TUTTI_CHECK_OK(expect("{"));
  location_ = 0;
  scopes_.assign(1, {});
  TUTTI_CHECK_OK(parse_body());
  source_.functions.push_back(std::move(function));
  return {};
}

Status Parser::parse_body() {
  while (!scopes_.empty()) {
    const std::string_view word = peek();
    if (word.empty()) return error("the function does not end");
    if (take_if("{")) {
      scopes_.emplace_back();
    } else if (take_if("}")) {
      scopes_.pop_back();
    } else if (peek(1) == ":") {
      function_->labels[take()] = static_cast<std::uint32_t>(function_->statements.size());
      take();
    } else if (word.starts_with('.')) {
      TUTTI_CHECK_OK(parse_declaration());
    } else if (!take_if(";")) {
      TUTTI_CHECK_OK(parse_statement());
    }
  }
  return {};
}

Status Parser::parse_declaration() {
  const std::string_view word = take();
  if (word == ".loc") return parse_location(), Status();
  if (word == ".reg") return parse_registers();
  if (word == ".pragma") return skip_to(";"), Status();
  if (word == ".shared") return parse_variable(word, false);
  Storage storage;
  TUTTI_CHECK_OK(parse_storage(storage));
  if (word == ".param") {
    scopes_.back().arguments[storage.name] = static_cast<std::int32_t>(function_->arguments.size());
    function_->arguments.push_back(storage);
  } else if (word == ".local") {
    function_->locals.push_back(storage);
  } else {
    return error("the PTX parser does not know the declaration " + std::string(word));
  }
  return expect(";");
}

void Parser::add_register(std::string_view name, Width width) {
  scopes_.back().registers[name] = static_cast<std::int32_t>(function_->registers.size());
  function_->registers.push_back(width);
  function_->register_names.push_back(name);
}

Status Parser::parse_registers() {
  const std::string_view type = take();
  const std::uint32_t bytes = bytes_of_type(type);
  const Width width = type == ".pred" ? Width::predicate
                      : bytes <= 4    ? Width::bits32
                      : bytes == 8    ? Width::bits64
                                      : Width::bits128;
  do {
    const std::string_view name = take();
    if (!take_if("<")) {
      add_register(name, width);
      continue;
    }
    const std::int64_t count = number();
    TUTTI_CHECK_OK(expect(">"));
    for (std::int64_t i = 0; i < count; ++i) {
      source_.names.push_back(std::string(name) + std::to_string(i));
      add_register(source_.names.back(), width);
    }
  } while (take_if(","));
  return expect(";");
}

Status Parser::parse_statement() {
  Statement statement;
  const char* const begin = peek().data();
  if (take_if("@")) {
    statement.guard_negated = take_if("!");
    Operand guard;
    resolve(take(), guard);
    if (guard.reg < 0) return error("the guard is no register");
    statement.guard = guard.reg;
  }
  statement.line = tokens_[at_].line;
  statement.location = location_;
  statement.opcode = take();
  while (peek() != ";") {
    if (peek().empty()) return error("the instruction does not end");
    if (take_if(",") || take_if("|")) continue;  // d|p: two results.
    TUTTI_CHECK_OK(parse_operand(statement.operands.emplace_back()));
  }
  statement.text = {begin, static_cast<std::size_t>(peek().data() - begin)};
  take();
  function_->statements.push_back(std::move(statement));
  return {};
}

void Parser::resolve(std::string_view name, Operand& operand) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto reg = scope->registers.find(name); reg != scope->registers.end()) {
      operand.kind = Operand::Kind::reg;
      operand.reg = reg->second;
      return;
    }
    if (const auto argument = scope->arguments.find(name); argument != scope->arguments.end()) {
      operand.kind = Operand::Kind::argument;
      operand.argument = argument->second;
      return;
    }
  }
  operand.kind = name.starts_with('%') ? Operand::Kind::special : Operand::Kind::symbol;
  operand.symbol = name;
}

Status Parser::parse_list(Operand& operand, std::string_view end) {
  operand.kind = Operand::Kind::list;
  while (!take_if(end)) {
    if (peek().empty() || peek() == ";") return error("the list does not end");
    if (take_if(",")) continue;
    TUTTI_CHECK_OK(parse_operand(operand.items.emplace_back()));
  }
  return {};
}

Status Parser::parse_memory(Operand& operand) {
  if (!parse_number(peek(), operand.value)) {
    resolve(take(), operand);
    if (take_if("+")) operand.value = number();
  } else {
    take();
  }
  operand.kind = Operand::Kind::memory;
  return expect("]");
}

Status Parser::parse_operand(Operand& operand) {
  if (take_if("{")) return parse_list(operand, "}");
  if (take_if("(")) return parse_list(operand, ")");
  if (take_if("[")) return parse_memory(operand);
  operand.negated = take_if("!");
  const bool minus = take_if("-");
  if (parse_number(peek(), operand.value)) {
    operand.kind = Operand::Kind::number;
    if (minus) operand.value = -operand.value;
    take();
    return {};
  }
  resolve(take(), operand);
  if (operand.kind == Operand::Kind::symbol && take_if("+")) operand.value = number();
  return {};
}

}  // namespace

Status parse_source(Source& source) { return Parser(source).parse(); }

const Function* Source::find_function(std::string_view wanted) const {
  const auto found =
      std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == wanted; });
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace tutti::ptx
