#include "shadow.h"

namespace cuda_on_cpu {

namespace {

constexpr std::size_t kept_pages = 16384;  // about 600 MB of granules

}  // namespace

void Shadow::clear() {
  ++generation_;
  nodes_.resize(1);
  free_ = 0;
  if (pages_.size() <= kept_pages) return;
  pages_.clear();
  cache_.assign(cached, nullptr);
}

Page& Shadow::load(std::uintptr_t address, Region (*region_at)(std::uintptr_t)) {
  std::uintptr_t tag = address >> page_bits;
  std::unique_ptr<Page>& page = pages_[tag];
  if (!page) page = std::make_unique<Page>();
  if (page->generation != generation_) {
    page->generation = generation_;
    Region region = region_at(address);
    page->memory = region.memory;
    page->array = region.array;
    page->shift = 2;
    page->cells.assign(page->memory == Memory::ignored ? 0 : page_bytes >> page->shift, Cell{});
  }
  cache_[tag % cached] = page.get();
  tags_[tag % cached] = tag;
  return *page;
}

void Shadow::split(Page& page, unsigned shift) {
  unsigned parts = 1u << (page.shift - shift), bytes = 1u << shift;
  std::vector<Cell> cells(page_bytes >> shift);
  for (std::size_t i = 0; i < page.cells.size(); ++i)
    for (unsigned part = 0; part < parts; ++part) {
      const Cell& whole = page.cells[i];
      Cell& cell = cells[i * parts + part];
      cell.write = whole.write;
      cell.before = whole.before >> (8 * bytes * part);
      std::vector<Access> others;
      for (std::uint32_t index = whole.others; index; index = nodes_[index].next) others.push_back(nodes_[index].access);
      for (auto oldest = others.rbegin(); oldest != others.rend(); ++oldest) push(cell, *oldest);
    }
  for (const Cell& cell : page.cells) release(cell.others);
  page.cells = std::move(cells);
  page.shift = shift;
}

void Shadow::push(Cell& cell, const Access& access) {
  std::uint32_t index = free_;
  if (index) {
    free_ = nodes_[index].next;
    nodes_[index] = {access, cell.others};
  } else {
    index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({access, cell.others});
  }
  cell.others = index;
}

void Shadow::release(std::uint32_t list) {
  while (list) {
    std::uint32_t next = nodes_[list].next;
    nodes_[list].next = free_;
    free_ = list;
    list = next;
  }
}

}  // namespace cuda_on_cpu
